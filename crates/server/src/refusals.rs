//! The errors of the wire for what the agent refuses.

use loomd_agent::{MAX_INPUT_CHARS, Refusal};
use loomd_protocol::{CodexErrorInfo, RpcError, TurnError};
use serde_json::json;

/// The reason in the data of an error when a node has lost the thread.
pub(crate) const OWNER_LOST: &str = "ownerLost";

/// Whether an error says that a node has lost the thread.
pub(crate) fn is_owner_lost(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| data["reason"] == OWNER_LOST)
}

/// Returns the error that the wire has for a refusal.
pub(crate) fn wire_error(refusal: Refusal) -> RpcError {
    match refusal {
        Refusal::Invalid(message) => RpcError::invalid_request(message),
        Refusal::LeaseLost(message) => RpcError::invalid_request(message).with_data(json!({ "reason": OWNER_LOST })),
        Refusal::Failed(message) => RpcError::internal(message),
        Refusal::NotSteerable { message, turn_kind } => {
            let data = TurnError {
                message: message.clone(),
                codex_error_info: Some(CodexErrorInfo::ActiveTurnNotSteerable { turn_kind }),
                additional_details: None,
            };
            RpcError::invalid_request(message).with_data(serde_json::to_value(data).unwrap_or_default())
        }
        Refusal::RequirementsUnavailable { message, cause } => {
            RpcError::invalid_request(message).with_data(cause.data())
        }
        Refusal::OfServer { code, message } => RpcError { code, message, data: None },
        Refusal::IdempotencyConflict { .. } => {
            RpcError::invalid_request(refusal.to_string()).with_data(json!({ "reason": "idempotencyConflict" }))
        }
        Refusal::InputTooLarge { chars } => RpcError::invalid_params(refusal.to_string()).with_data(json!({
            "input_error_code": "input_too_large", "max_chars": MAX_INPUT_CHARS, "actual_chars": chars,
        })),
    }
}

//! `approval/*`

use loomd_agent::{ApprovalId, DecideError, approval_state, decided_by, parse_id};
use loomd_protocol::{ApprovalDecideParams, ApprovalDecideResponse, ApprovalListParams, JsonValue, RpcError, call};
use serde_json::json;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `approval/list`
pub(crate) async fn list(cx: &Context, params: ApprovalListParams) -> Handled<call::ApprovalList> {
    let id = params.thread_id.as_deref().map(parse_id).transpose().map_err(wire_error)?;
    let cursor = params.cursor.as_deref();
    let listed = cx.app.threads().list_approvals(id, params.state, cursor, params.limit).await;
    answer(listed.map_err(wire_error)?)
}

/// `approval/decide`
pub(crate) async fn decide(cx: &Context, params: ApprovalDecideParams) -> Handled<call::ApprovalDecide> {
    let id: ApprovalId = params
        .approval_id
        .parse()
        .map_err(|error| RpcError::invalid_request(format!("invalid approvalId: {error}")))?;
    let approval = cx.app.threads().decide(id, &params.decision, cx.decider()).await.map_err(refused)?;
    answer(ApprovalDecideResponse { approval })
}

/// The error for a decision that does not count. Its data says why, and who decided.
fn refused(error: DecideError) -> RpcError {
    let message = error.to_string();
    let data = match error {
        DecideError::NotStored(_) => return RpcError::internal(message),
        DecideError::WrongKind { .. } | DecideError::Invalid(_) => {
            return RpcError::invalid_params(message).with_data(json!({ "reason": "invalidDecision" }));
        }
        DecideError::Unknown => json!({ "reason": "unknownApproval" }),
        DecideError::NotWaiting => json!({ "reason": "notWaiting" }),
        DecideError::Closed => json!({ "reason": "alreadyClosed", "state": "cancelled" }),
        DecideError::Decided(by) => {
            json!({ "reason": "alreadyDecided", "state": "decided", "decidedBy": decided_by(&by) })
        }
        DecideError::Ended(outcome) => {
            let reason = if outcome.by.is_some() { "alreadyDecided" } else { "alreadyClosed" };
            let mut data = json!({
                "reason": reason,
                "state": approval_state(&outcome),
                "decidedAt": outcome.at_ms.div_euclid(1000),
            });
            if let Some(by) = &outcome.by {
                data["decidedBy"] = json!(decided_by(by));
                data["decision"] = outcome.decision.clone().unwrap_or(JsonValue::Null);
            }
            data
        }
    };
    RpcError::invalid_request(message).with_data(data)
}

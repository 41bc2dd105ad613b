//! Maps error responses, and errors within a stream, to [`ModelError`]. Servers agree on little but the status, so
//! message texts are matched, too.

use loomd_protocol::JsonValue;

use crate::refusal::{ErrorDetail, Refusal, is_bad_image, is_too_long};
use crate::{ModelError, retry};

pub(super) fn to_error(refusal: &Refusal<'_>) -> ModelError {
    let error = ErrorDetail::parse_any(refusal.body);
    let has_code = |code: &str| error.code.as_deref() == Some(code) || error.kind.as_deref() == Some(code);
    match refusal.status.as_u16() {
        400 | 413 | 422 | 500 if is_too_long(refusal.body) => {
            ModelError::ContextWindowExceeded { provider_message: refusal.provider_message(&error) }
        }
        400 | 422 if is_bad_image(refusal.body) => ModelError::InvalidImage,
        400 | 413 | 422 => refusal.bad_request(&error),
        402 => ModelError::QuotaExceeded { provider_message: refusal.provider_message(&error) },
        429 if has_code("insufficient_quota") || has_code("billing_hard_limit_reached") => {
            ModelError::QuotaExceeded { provider_message: refusal.provider_message(&error) }
        }
        429 => refusal.too_many_requests(&error),
        500 => refusal.high_demand(&error),
        503 | 529 if has_code("server_is_overloaded") || has_code("slow_down") || has_code("overloaded_error") => {
            ModelError::Overloaded { provider_message: refusal.provider_message(&error) }
        }
        _ => refusal.unexpected(&error),
    }
}

/// Maps an error that arrived as a chunk.
pub(super) fn stream_error(error: &JsonValue) -> ModelError {
    let text = error.to_string();
    let message = error["message"].as_str().or(error.as_str()).unwrap_or(&text);
    let code = match &error["code"] {
        JsonValue::String(code) => code.clone(),
        code => code.to_string(),
    };
    match &*code {
        _ if is_too_long(&text) => ModelError::ContextWindowExceeded { provider_message: Some(message.into()) },
        "insufficient_quota" | "402" => ModelError::QuotaExceeded { provider_message: Some(message.into()) },
        "400" | "422" => ModelError::BadRequest { message: message.into(), body: text.clone() },
        _ => ModelError::Disconnected { message: message.into(), retry_after: retry::retry_after_in_message(message) },
    }
}

//! Maps error responses, and errors within a stream, to [`ModelError`].

use loomd_protocol::JsonValue;

use crate::refusal::{ErrorDetail, Refusal, is_bad_image, is_too_long};
use crate::{ModelError, retry};

pub(super) fn to_error(refusal: &Refusal<'_>) -> ModelError {
    let error = ErrorDetail::parse_any(refusal.body);
    match (refusal.status.as_u16(), error.kind.as_deref()) {
        (400 | 413 | 422, _) if is_too_long(refusal.body) => {
            ModelError::ContextWindowExceeded { provider_message: refusal.provider_message(&error) }
        }
        (400 | 422, _) if is_bad_image(refusal.body) => ModelError::InvalidImage,
        (402, _) | (_, Some("billing_error")) => {
            ModelError::QuotaExceeded { provider_message: refusal.provider_message(&error) }
        }
        (400 | 413 | 422, _) => refusal.bad_request(&error),
        (429, _) if refusal.body.contains("enforced_spend_limit_reached") => {
            ModelError::QuotaExceeded { provider_message: refusal.provider_message(&error) }
        }
        (429, _) => refusal.too_many_requests(&error),
        (529, _) | (503, Some("overloaded_error")) => {
            ModelError::Overloaded { provider_message: refusal.provider_message(&error) }
        }
        (500, _) => refusal.high_demand(&error),
        _ => refusal.unexpected(&error),
    }
}

/// Maps an `error` event. The response had begun, so unknown errors are retryable.
pub(super) fn stream_error(error: &JsonValue) -> ModelError {
    let text = error.to_string();
    let message = error["message"].as_str().or(error.as_str()).unwrap_or(&text);
    match error["type"].as_str() {
        _ if is_too_long(&text) => ModelError::ContextWindowExceeded { provider_message: Some(message.into()) },
        Some("billing_error") => ModelError::QuotaExceeded { provider_message: Some(message.into()) },
        Some("invalid_request_error") => ModelError::BadRequest { message: message.into(), body: text.clone() },
        _ => ModelError::Disconnected { message: message.into(), retry_after: retry::retry_after_in_message(message) },
    }
}

//! How a response says that it failed, in the middle of a stream that began well.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use loomd_protocol::{JsonObject, JsonValue};
use serde::Deserialize;

use super::decode::Decoded;
use super::refusal;
use crate::refusal::Refusal;
use crate::{ModelError, retry};

/// `response.failed`.
pub(super) fn failed(json: &str) -> ModelError {
    #[derive(Deserialize)]
    struct Event {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        error: Failure,
    }
    serde_json::from_str(json).map(|event: Event| event.response.error).unwrap_or_default().into()
}

/// `response.incomplete`.
pub(super) fn incomplete(json: &str) -> ModelError {
    let event: JsonValue = serde_json::from_str(json).unwrap_or_default();
    let reason = event["response"]["incomplete_details"]["reason"].as_str().unwrap_or("unknown");
    ModelError::disconnected(format!("Incomplete response returned, reason: {reason}"))
}

/// `error`, which is outside of a response: with a status it stands for an HTTP answer, else for a failed response.
pub(super) fn error(json: &str, url: &str) -> Decoded {
    #[derive(Deserialize)]
    struct Event {
        status: Option<u16>,
        error: Option<Failure>,
        headers: Option<JsonObject>,
        #[serde(flatten)]
        plain: Failure,
    }
    let Ok(event) = serde_json::from_str::<Event>(json) else { return Decoded::Nothing };
    let status = event.status.and_then(|status| StatusCode::from_u16(status).ok());
    match (status, event.error) {
        (_, Some(failure)) if failure.code() == Some("websocket_connection_limit_reached") => {
            Decoded::Refused(failure.into())
        }
        (Some(status), _) => {
            let headers = header_map(event.headers.unwrap_or_default());
            Decoded::Refused(refusal::meaning(&Refusal { status, headers: &headers, body: json, url }))
        }
        (None, failure) => Decoded::Failed(failure.unwrap_or(event.plain).into()),
    }
}

fn header_map(headers: JsonObject) -> HeaderMap {
    let header = |(name, value): (String, JsonValue)| {
        let value = match value {
            JsonValue::String(text) => text,
            other => other.to_string(),
        };
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.into_iter().filter_map(header).collect()
}

/// The error in a body that should have been a stream.
pub(super) fn stray_error(body: &str) -> Option<ModelError> {
    #[derive(Deserialize)]
    struct Body {
        error: Failure,
    }
    serde_json::from_str(body).ok().map(|body: Body| body.error.into())
}

/// What `response.failed` and its like say.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Failure {
    code: Option<JsonValue>,
    message: Option<String>,
}

impl Failure {
    fn code(&self) -> Option<&str> {
        self.code.as_ref().and_then(JsonValue::as_str)
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        let message = failure.message.clone().filter(|message| !message.trim().is_empty());
        match failure.code() {
            Some("context_length_exceeded") => Self::ContextWindowExceeded,
            Some("insufficient_quota") => Self::QuotaExceeded,
            Some("usage_not_included") => Self::UsageNotIncluded,
            Some("invalid_prompt") => Self::InvalidPrompt(message.unwrap_or_else(|| "Invalid request.".into())),
            Some("server_is_overloaded" | "slow_down") => Self::Overloaded,
            code => {
                let limited = code == Some("rate_limit_exceeded");
                let retry_after = message.as_deref().filter(|_| limited).and_then(retry::asked_by_message);
                let message = message.unwrap_or_else(|| "response.failed event received".into());
                Self::Disconnected { message, retry_after }
            }
        }
    }
}

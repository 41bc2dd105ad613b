//! Failures that a response reports within its stream.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use loomd_protocol::{JsonObject, JsonValue};
use serde::Deserialize;

use super::decode::{DecodedEvent, Usage};
use super::refusal;
use crate::error::NamedFailure;
use crate::refusal::{Refusal, is_too_long};
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
    let usage = serde_json::from_value::<Option<Usage>>(event["response"]["usage"].clone()).ok().flatten();
    ModelError::incomplete(reason, usage.map(Into::into))
}

/// `error`, which is outside of a response: with a status it stands for an HTTP error response, else for
/// `response.failed`.
pub(super) fn error(json: &str, url: &str) -> DecodedEvent {
    #[derive(Deserialize)]
    struct Event {
        status: Option<u16>,
        error: Option<Failure>,
        headers: Option<JsonObject>,
        #[serde(flatten)]
        plain: Failure,
    }
    let Ok(event) = serde_json::from_str::<Event>(json) else { return DecodedEvent::Nothing };
    let status = event.status.and_then(|status| StatusCode::from_u16(status).ok());
    match (status, event.error) {
        (_, Some(failure)) if failure.code() == Some("websocket_connection_limit_reached") => {
            DecodedEvent::Refused(failure.into())
        }
        (Some(status), _) => {
            let headers = header_map(event.headers.unwrap_or_default());
            DecodedEvent::Refused(refusal::to_error(&Refusal { status, headers: &headers, body: json, url }))
        }
        (None, failure) => DecodedEvent::Failed(failure.unwrap_or(event.plain).into()),
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

/// Returns the error in an event without a `type`, `{"error": {…}}`, as proxies send it.
pub(super) fn untyped(json: &str) -> Option<ModelError> {
    // Such events are rare, so parsing them twice does not matter.
    let mut event: JsonValue = serde_json::from_str(json).ok()?;
    let failure = match event.get_mut("error").map(JsonValue::take)? {
        JsonValue::String(message) => Failure { message: Some(message), ..Failure::default() },
        error @ JsonValue::Object(_) => serde_json::from_value(error).ok()?,
        _ => return None,
    };
    Some(failure.into())
}

/// The error object of `response.failed` and similar events.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Failure {
    #[serde(rename = "type")]
    kind: Option<JsonValue>,
    code: Option<JsonValue>,
    message: Option<String>,
}

impl Failure {
    fn code(&self) -> Option<&str> {
        self.code.as_ref().and_then(JsonValue::as_str)
    }

    /// Servers report an exceeded context window in the code, the type or the message.
    fn is_too_long(&self) -> bool {
        let kind = self.kind.as_ref().and_then(JsonValue::as_str);
        [self.code(), kind, self.message.as_deref()].into_iter().flatten().any(is_too_long)
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        let provider_message = failure.message.clone().filter(|message| !message.trim().is_empty());
        match failure.code() {
            _ if failure.is_too_long() => Self::ContextWindowExceeded { provider_message },
            Some("insufficient_quota") => Self::QuotaExceeded { provider_message },
            Some("usage_not_included") => Self::UsageNotIncluded,
            Some("invalid_prompt") => {
                Self::InvalidPrompt(provider_message.unwrap_or_else(|| "Invalid request.".into()))
            }
            Some("server_is_overloaded" | "slow_down") => Self::Overloaded { provider_message },
            code => match code.and_then(NamedFailure::of) {
                Some(failure) => {
                    let limited = failure == NamedFailure::RateLimit;
                    let retry_after =
                        provider_message.as_deref().filter(|_| limited).and_then(retry::retry_after_in_message);
                    Self::Named { failure, message: failure.message(provider_message), retry_after }
                }
                None => Self::disconnected(provider_message.unwrap_or_else(|| "response.failed event received".into())),
            },
        }
    }
}

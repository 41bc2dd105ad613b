//! Model events as JSON, one object per line: as events of the Responses API where those exist, with types `loomd.…`
//! for the rest. The recorder writes this format, the rehearsal reads it, and users may write it by hand.

use std::time::Duration;

use loomd_protocol::{JsonObject, JsonValue, RateLimitSnapshot};
use serde_json::json;

use crate::error::NamedFailure;
use crate::responses::{DecodedEvent, decode};
use crate::{ModelError, ModelEvent, ResponseHeaders};

const HEADERS: &str = "loomd.headers";
const MODEL: &str = "loomd.model";
const RATE_LIMITS: &str = "loomd.rate_limits";
const ERROR: &str = "loomd.error";

/// Encodes an event as a line of a scenario.
pub(crate) fn encode(event: &Result<ModelEvent, ModelError>) -> JsonValue {
    match event {
        Ok(event) => encode_event(event),
        Err(error) => encode_error(error),
    }
}

/// Decodes a line; `None` if it is not an event.
pub(crate) fn read(line: &JsonValue) -> Option<Result<ModelEvent, ModelError>> {
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    Some(match line["type"].as_str()? {
        HEADERS => Ok(ModelEvent::Headers(ResponseHeaders {
            model: text("model"),
            turn_state: text("turn_state"),
            reasoning_included: line["reasoning_included"].as_bool().unwrap_or(false),
            models_etag: text("models_etag"),
            rate_limits: serde_json::from_value(line["rate_limits"].clone()).unwrap_or_default(),
        })),
        MODEL => Ok(ModelEvent::ServerModel(text("model")?)),
        RATE_LIMITS => Ok(ModelEvent::RateLimits(
            serde_json::from_value(line["rate_limits"].clone()).unwrap_or_else(|_| no_limits()),
        )),
        ERROR => Err(read_error(line)?),
        _ => match decode(&line.to_string(), "") {
            DecodedEvent::Event(event) => Ok(event),
            DecodedEvent::Failed(error) | DecodedEvent::Refused(error) => Err(error),
            DecodedEvent::Nothing => return None,
        },
    })
}

fn encode_event(event: &ModelEvent) -> JsonValue {
    match event {
        ModelEvent::Headers(headers) => {
            let mut line = JsonObject::from_iter([("type".to_owned(), HEADERS.into())]);
            let texts =
                [("model", &headers.model), ("turn_state", &headers.turn_state), ("models_etag", &headers.models_etag)];
            for (name, text) in texts {
                line.extend(text.as_ref().map(|text| (name.to_owned(), text.as_str().into())));
            }
            if headers.reasoning_included {
                line.insert("reasoning_included".into(), true.into());
            }
            if !headers.rate_limits.is_empty() {
                line.insert("rate_limits".into(), json!(headers.rate_limits));
            }
            line.into()
        }
        ModelEvent::ItemAdded { item, id, output_index } => {
            json!({ "type": "response.output_item.added", "output_index": output_index, "item": with_id(json!(item), id) })
        }
        ModelEvent::ItemDone { item, id, output_index } => {
            json!({ "type": "response.output_item.done", "output_index": output_index, "item": with_id(json!(item), id) })
        }
        ModelEvent::TextDelta { item_id, delta } => {
            json!({ "type": "response.output_text.delta", "item_id": item_id, "delta": delta })
        }
        ModelEvent::SummaryPartAdded { item_id, index } => {
            json!({ "type": "response.reasoning_summary_part.added", "item_id": item_id, "summary_index": index })
        }
        ModelEvent::SummaryDelta { item_id, index, delta } => json!({
            "type": "response.reasoning_summary_text.delta", "item_id": item_id, "summary_index": index, "delta": delta,
        }),
        ModelEvent::ReasoningDelta { item_id, index, delta } => json!({
            "type": "response.reasoning_text.delta", "item_id": item_id, "content_index": index, "delta": delta,
        }),
        ModelEvent::ServerModel(model) => json!({ "type": MODEL, "model": model }),
        ModelEvent::RateLimits(limits) => json!({ "type": RATE_LIMITS, "rate_limits": limits }),
        ModelEvent::Moderation(moderation) => {
            json!({ "type": "response.metadata", "metadata": { "openai_chatgpt_moderation_metadata": moderation } })
        }
        ModelEvent::InputDelta { item_id, delta } => {
            json!({ "type": "response.custom_tool_call_input.delta", "item_id": item_id, "delta": delta })
        }
        ModelEvent::Completed { response_id, usage } => {
            let usage = usage.as_ref().map(|usage| {
                json!({
                    "input_tokens": usage.input_tokens,
                    "input_tokens_details": {
                        "cached_tokens": usage.cached_input_tokens,
                        "cache_write_tokens": usage.cache_write_input_tokens,
                    },
                    "output_tokens": usage.output_tokens,
                    "output_tokens_details": { "reasoning_tokens": usage.reasoning_output_tokens },
                    "total_tokens": usage.total_tokens,
                })
            });
            json!({ "type": "response.completed", "response": { "id": response_id, "usage": usage } })
        }
    }
}

fn with_id(mut item: JsonValue, id: &Option<String>) -> JsonValue {
    if let Some(id) = id {
        item["id"] = id.as_str().into();
    }
    item
}

/// Encodes an error by kind, with all fields that are needed to decode it.
fn encode_error(error: &ModelError) -> JsonValue {
    let mut line = JsonObject::from_iter([("type".to_owned(), ERROR.into()), ("kind".to_owned(), kind(error).into())]);
    let mut put = |name: &str, value: JsonValue| _ = line.insert(name.into(), value);
    match error {
        ModelError::BadRequest { message, body } => {
            put("message", message.as_str().into());
            put("body", body.as_str().into());
        }
        ModelError::Status { status, message, .. } => {
            put("status", (*status).into());
            put("message", message.as_str().into());
        }
        ModelError::TooManyRequests { request_id, provider_message, .. } => {
            put("request_id", json!(request_id));
            put("said", json!(provider_message));
        }
        ModelError::QuotaExceeded { provider_message }
        | ModelError::HighDemand { provider_message, .. }
        | ModelError::Overloaded { provider_message }
        | ModelError::ContextWindowExceeded { provider_message } => put("said", json!(provider_message)),
        ModelError::NotAStream { found, url } => {
            put("url", url.as_str().into());
            put("message", found.as_str().into());
        }
        ModelError::Incomplete { reason, usage } => {
            put("message", reason.as_str().into());
            put("usage", json!(usage));
        }
        ModelError::UsageLimit { message, rate_limits } => {
            put("message", message.as_str().into());
            put("rate_limits", json!(rate_limits));
        }
        ModelError::Unreachable { url, cause } | ModelError::Connect { url, cause } => {
            put("url", url.as_str().into());
            put("message", cause.as_str().into());
        }
        ModelError::MissingKey { variable, instructions } => {
            put("variable", variable.as_str().into());
            put("message", json!(instructions));
        }
        ModelError::Disconnected { message, .. }
        | ModelError::Named { message, .. }
        | ModelError::InvalidPrompt(message)
        | ModelError::Unauthorized(message)
        | ModelError::Credentials(message)
        | ModelError::Unsupported(message) => put("message", message.as_str().into()),
        _ => {}
    }
    if let Some(delay) = error.retry_after() {
        put("retry_after_ms", u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).into());
    }
    line.into()
}

fn kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::BadRequest { .. } => "bad_request",
        ModelError::InvalidImage => "invalid_image",
        ModelError::Status { .. } => "status",
        ModelError::TooManyRequests { .. } => "too_many_requests",
        ModelError::UsageLimit { .. } => "usage_limit",
        ModelError::UsageNotIncluded => "usage_not_included",
        ModelError::QuotaExceeded { .. } => "quota_exceeded",
        ModelError::HighDemand { .. } => "high_demand",
        ModelError::Overloaded { .. } => "overloaded",
        ModelError::ContextWindowExceeded { .. } => "context_window_exceeded",
        ModelError::InvalidPrompt(_) => "invalid_prompt",
        ModelError::Unreachable { .. } => "unreachable",
        ModelError::Connect { .. } => "connect",
        ModelError::NotAStream { .. } => "not_a_stream",
        ModelError::Incomplete { .. } => "incomplete",
        ModelError::Disconnected { .. } => "disconnected",
        ModelError::MissingKey { .. } => "missing_key",
        ModelError::Unauthorized(_) => "unauthorized",
        ModelError::Credentials(_) => "credentials",
        ModelError::Unsupported(_) => "unsupported",
        ModelError::Named { failure, .. } => failure.code(),
    }
}

/// Decodes an error; `None` for an unknown kind.
pub(crate) fn read_error(line: &JsonValue) -> Option<ModelError> {
    let text = |name: &str, otherwise: &str| line[name].as_str().unwrap_or(otherwise).to_owned();
    let message = |otherwise: &str| text("message", otherwise);
    let provider_message = line["said"].as_str().map(str::to_owned);
    let retry_after = line["retry_after_ms"].as_u64().map(Duration::from_millis);
    Some(match line["kind"].as_str()? {
        "bad_request" => {
            let message = message("The request is invalid.");
            ModelError::BadRequest { body: text("body", &message), message }
        }
        "invalid_image" => ModelError::InvalidImage,
        "status" => {
            let status = line["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(503);
            ModelError::Status { status, message: message(&format!("unexpected status {status}")), retry_after }
        }
        "too_many_requests" => ModelError::TooManyRequests {
            request_id: line["request_id"].as_str().map(Into::into),
            provider_message,
            retry_after,
        },
        "usage_limit" => {
            let rate_limits = serde_json::from_value(line["rate_limits"].clone()).unwrap_or_else(|_| no_limits());
            let message = message("You've hit your usage limit. Try again later.");
            ModelError::UsageLimit { message, rate_limits: Box::new(rate_limits) }
        }
        "usage_not_included" => ModelError::UsageNotIncluded,
        "quota_exceeded" => ModelError::QuotaExceeded { provider_message },
        "high_demand" => ModelError::HighDemand { provider_message, retry_after },
        "overloaded" => ModelError::Overloaded { provider_message },
        "context_window_exceeded" => ModelError::ContextWindowExceeded { provider_message },
        "invalid_prompt" => ModelError::InvalidPrompt(message("Invalid request.")),
        "unreachable" => {
            ModelError::Unreachable { url: text("url", "rehearsal"), cause: message("connection refused") }
        }
        "not_a_stream" => ModelError::NotAStream { url: text("url", "rehearsal"), found: message("an HTML page") },
        "incomplete" => ModelError::Incomplete {
            reason: message("max_output_tokens"),
            usage: serde_json::from_value(line["usage"].clone()).unwrap_or_default(),
        },
        "connect" => ModelError::Connect { url: text("url", "rehearsal"), cause: message("connection reset") },
        "disconnected" => ModelError::Disconnected { message: message("the connection was closed"), retry_after },
        "missing_key" => ModelError::MissingKey {
            variable: text("variable", "SOME_KEY"),
            instructions: line["message"].as_str().map(Into::into),
        },
        "unauthorized" => ModelError::Unauthorized(message("The credentials were refused.")),
        "credentials" => ModelError::Credentials(message("The credentials could not be obtained.")),
        "unsupported" => ModelError::Unsupported(message("The provider does not support this.")),
        code => {
            let failure = NamedFailure::of(code)?;
            ModelError::Named { failure, message: message(&failure.message(None)), retry_after }
        }
    })
}

pub(crate) fn no_limits() -> RateLimitSnapshot {
    RateLimitSnapshot {
        limit_id: None,
        limit_name: None,
        primary: None,
        secondary: None,
        credits: None,
        plan_type: None,
    }
}

#[cfg(test)]
mod tests {
    use loomd_protocol::ResponseItem;

    use super::*;
    use crate::TokenUsage;

    #[test]
    fn every_event_round_trips() {
        let item: ResponseItem = serde_json::from_value(
            json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "c", "id": "i" }),
        )
        .unwrap();
        let reasoning = ResponseItem::Reasoning { summary: Vec::new(), content: None, encrypted_content: None };
        let id = || Some("i".to_owned());
        let usage = TokenUsage {
            total_tokens: 6,
            input_tokens: 3,
            cached_input_tokens: 1,
            cache_write_input_tokens: 1,
            output_tokens: 3,
            reasoning_output_tokens: 2,
        };
        let headers = ResponseHeaders {
            model: Some("m".into()),
            turn_state: Some("t".into()),
            reasoning_included: true,
            models_etag: Some("e".into()),
            rate_limits: vec![no_limits()],
        };
        for event in [
            ModelEvent::Headers(headers),
            ModelEvent::Headers(ResponseHeaders::default()),
            ModelEvent::ItemAdded { item: reasoning, id: None, output_index: None },
            ModelEvent::ItemDone { item, id: id(), output_index: Some(1) },
            ModelEvent::TextDelta { item_id: id(), delta: "ä\n".into() },
            ModelEvent::SummaryPartAdded { item_id: None, index: 1 },
            ModelEvent::SummaryDelta { item_id: id(), index: 1, delta: "s".into() },
            ModelEvent::ReasoningDelta { item_id: id(), index: 0, delta: "r".into() },
            ModelEvent::ServerModel("other".into()),
            ModelEvent::RateLimits(no_limits()),
            ModelEvent::Completed { response_id: "r".into(), usage: None },
            ModelEvent::Completed { response_id: "r".into(), usage: Some(usage) },
        ] {
            let event = Ok(event);
            assert_eq!(read(&encode(&event)), Some(event));
        }
    }

    #[test]
    fn every_error_round_trips() {
        let retry_after = Some(Duration::from_millis(1500));
        let words = || "words".to_owned();
        for error in [
            ModelError::BadRequest { message: words(), body: "{}".into() },
            ModelError::InvalidImage,
            ModelError::Status { status: 502, message: words(), retry_after },
            ModelError::TooManyRequests {
                request_id: Some("r".into()),
                provider_message: Some(words()),
                retry_after: None,
            },
            ModelError::UsageLimit { message: words(), rate_limits: Box::new(no_limits()) },
            ModelError::UsageNotIncluded,
            ModelError::QuotaExceeded { provider_message: Some(words()) },
            ModelError::HighDemand { provider_message: None, retry_after },
            ModelError::Overloaded { provider_message: None },
            ModelError::ContextWindowExceeded { provider_message: Some(words()) },
            ModelError::Unreachable { url: "u".into(), cause: words() },
            ModelError::NotAStream { url: "u".into(), found: words() },
            ModelError::Incomplete { reason: words(), usage: None },
            ModelError::InvalidPrompt(words()),
            ModelError::Connect { url: "u".into(), cause: words() },
            ModelError::Disconnected { message: words(), retry_after },
            ModelError::MissingKey { variable: "K".into(), instructions: Some(words()) },
            ModelError::Unauthorized(words()),
            ModelError::Credentials(words()),
            ModelError::Unsupported(words()),
        ] {
            assert_eq!(read_error(&json!({ "kind": kind(&error) })).as_ref().map(kind), Some(kind(&error)));
            let error = Err(error);
            assert_eq!(read(&encode(&error)), Some(error));
        }
        assert_eq!(read(&json!({ "type": "loomd.error", "kind": "unknown" })), None);
    }
}

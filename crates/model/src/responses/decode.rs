//! Decodes one event of the Responses API. Reads the type first, so that unneeded events are not parsed, and copies
//! text once.

use std::borrow::Cow;
use std::fmt;

use loomd_protocol::{ContentItem, JsonObject, JsonValue, MessagePhase, ResponseItem};
use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

use super::failure::{error, failed, incomplete, untyped};
use crate::rate_limits::RateLimitsEvent;
use crate::{ModelError, ModelEvent, TokenUsage};

/// The result of decoding an event.
#[derive(Debug, PartialEq)]
pub(crate) enum DecodedEvent {
    Event(ModelEvent),
    /// The response failed, unless `response.completed` follows.
    Failed(ModelError),
    /// The call was refused; nothing follows.
    Refused(ModelError),
    /// Not an event, or one without a meaning here.
    Nothing,
}

/// Decodes one event. `url` is for error messages.
pub(crate) fn decode(json: &str, url: &str) -> DecodedEvent {
    let Some(kind) = kind(json) else { return untyped(json).map_or(DecodedEvent::Nothing, DecodedEvent::Failed) };
    let event = match &*kind {
        "response.output_text.delta" => delta(json, |delta, text| {
            Some(ModelEvent::TextDelta { item_id: delta.item_id.map(Text::owned), delta: text })
        }),
        "response.reasoning_summary_text.delta" => delta(json, |delta, text| {
            let index = delta.summary_index?;
            Some(ModelEvent::SummaryDelta { item_id: delta.item_id.map(Text::owned), index, delta: text })
        }),
        "response.reasoning_text.delta" => delta(json, |delta, text| {
            let index = delta.content_index?;
            Some(ModelEvent::ReasoningDelta { item_id: delta.item_id.map(Text::owned), index, delta: text })
        }),
        "response.reasoning_summary_part.added" => summary_part(json),
        "response.output_item.added" => {
            item(json).map(|(item, id, output_index)| ModelEvent::ItemAdded { item, id, output_index })
        }
        "response.output_item.done" => {
            item(json).map(|(item, id, output_index)| ModelEvent::ItemDone { item, id, output_index })
        }
        "response.completed" => return completed(json),
        "response.failed" => return DecodedEvent::Failed(failed(json)),
        "response.incomplete" => return DecodedEvent::Failed(incomplete(json)),
        "error" => return error(json, url),
        "response.custom_tool_call_input.delta" => delta(json, |delta, text| {
            Some(ModelEvent::InputDelta { item_id: delta.item_id.map(Text::owned), delta: text })
        }),
        "response.metadata" => moderation(json),
        "codex.rate_limits" => {
            serde_json::from_str::<RateLimitsEvent>(json).ok().map(|event| ModelEvent::RateLimits(event.into()))
        }
        _ => None,
    };
    event.map_or(DecodedEvent::Nothing, DecodedEvent::Event)
}

/// Returns what the provider's moderation says, if the event has it.
fn moderation(json: &str) -> Option<ModelEvent> {
    let mut event: JsonValue = serde_json::from_str(json).ok()?;
    let moderation = event.get_mut("metadata")?.get_mut("openai_chatgpt_moderation_metadata")?.take();
    (!moderation.is_null()).then_some(ModelEvent::Moderation(moderation))
}

/// Returns the model that serves the call, if the event carries headers that name it.
pub(super) fn server_model(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct HeadersEvent {
        headers: Option<JsonObject>,
        response: Option<Response>,
    }
    #[derive(Deserialize)]
    struct Response {
        headers: Option<JsonObject>,
    }
    // Few events carry headers, and searching is cheaper than parsing.
    memmem::find(json.as_bytes(), b"\"headers\"")?;
    let event: HeadersEvent = serde_json::from_str(json).ok()?;
    [event.response.and_then(|response| response.headers), event.headers].into_iter().flatten().find_map(|headers| {
        let model = headers.iter().find(|(name, _)| {
            name.eq_ignore_ascii_case("openai-model") || name.eq_ignore_ascii_case("x-openai-model")
        })?;
        // A header may be a list of values.
        model.1.as_str().or(model.1.get(0).and_then(JsonValue::as_str)).map(Into::into)
    })
}

/// Returns the value of `type`, which is almost always the first member.
fn kind(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    let first = || {
        let rest = json.trim_start().strip_prefix('{')?.trim_start().strip_prefix("\"type\"")?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let kind = &rest[..rest.find('"')?];
        (!kind.contains('\\')).then_some(kind)
    };
    match first() {
        Some(kind) => Some(Cow::Borrowed(kind)),
        None => serde_json::from_str::<Kind>(json).ok().map(|kind| kind.kind),
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    summary_index: Option<i64>,
    content_index: Option<i64>,
}

fn delta(json: &str, event: impl FnOnce(Delta<'_>, String) -> Option<ModelEvent>) -> Option<ModelEvent> {
    let mut delta: Delta = serde_json::from_str(json).ok()?;
    let text = std::mem::take(&mut delta.delta).owned();
    event(delta, text)
}

fn summary_part(json: &str) -> Option<ModelEvent> {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow)]
        item_id: Option<Text<'a>>,
        summary_index: i64,
    }
    let part: Part = serde_json::from_str(json).ok()?;
    Some(ModelEvent::SummaryPartAdded { item_id: part.item_id.map(Text::owned), index: part.summary_index })
}

fn item(json: &str) -> Option<(ResponseItem, Option<String>, Option<u64>)> {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        item: &'a RawValue,
        output_index: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow)]
        id: Option<Text<'a>>,
    }
    let event: Event = serde_json::from_str(json).ok()?;
    let json = event.item.get();
    let id = serde_json::from_str::<Id>(json).ok().and_then(|item| item.id).map(Text::owned);
    let item = serde_json::from_str(json).ok().or_else(|| message_with_unknown_parts(json))?;
    (item != ResponseItem::Other).then_some((item, id, event.output_index))
}

/// Decodes a message with content parts that the protocol does not have: refusals become text, other parts are dropped.
fn message_with_unknown_parts(json: &str) -> Option<ResponseItem> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "type")]
        kind: String,
        role: String,
        content: Vec<JsonValue>,
        phase: Option<MessagePhase>,
        end_turn: Option<bool>,
        id: Option<String>,
    }
    let message: Message = serde_json::from_str(json).ok()?;
    let part = |part: JsonValue| match part["refusal"].as_str() {
        Some(refusal) => Some(ContentItem::OutputText { text: refusal.into() }),
        None => serde_json::from_value(part).ok(),
    };
    (message.kind == "message").then(|| ResponseItem::Message {
        role: message.role,
        content: message.content.into_iter().filter_map(part).collect(),
        end_turn: message.end_turn,
        phase: message.phase,
        id: message.id,
    })
}

fn completed(json: &str) -> DecodedEvent {
    #[derive(Deserialize)]
    struct Event {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        id: String,
        usage: Option<Usage>,
    }
    match serde_json::from_str::<Event>(json) {
        Ok(Event { response }) => DecodedEvent::Event(ModelEvent::Completed {
            response_id: response.id,
            usage: response.usage.map(Into::into),
        }),
        Err(error) => {
            DecodedEvent::Failed(ModelError::disconnected(format!("failed to parse ResponseCompleted: {error}")))
        }
    }
}

/// The token usage of a response.
#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    input_tokens: i64,
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: i64,
    output_tokens_details: Option<OutputDetails>,
    total_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: i64,
    #[serde(default)]
    cache_write_tokens: i64,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: i64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            total_tokens: usage.total_tokens.unwrap_or(usage.input_tokens.saturating_add(usage.output_tokens)),
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.input_tokens_details.as_ref().map_or(0, |details| details.cached_tokens),
            cache_write_input_tokens: usage.input_tokens_details.map_or(0, |details| details.cache_write_tokens),
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.output_tokens_details.map_or(0, |details| details.reasoning_tokens),
        }
    }
}

/// A string that is borrowed unless it has escapes, also inside of an `Option`.
#[derive(Default)]
struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    fn owned(self) -> String {
        self.0.into_owned()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.into()))
            }
        }
        deserializer.deserialize_str(TextVisitor).map(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(json: &str, expected: Option<ModelEvent>) {
        assert_eq!(decode(json, "url"), expected.map_or(DecodedEvent::Nothing, DecodedEvent::Event), "{json}");
    }

    fn text(item_id: Option<&str>, delta: &str) -> Option<ModelEvent> {
        Some(ModelEvent::TextDelta { item_id: item_id.map(Into::into), delta: delta.into() })
    }

    #[test]
    fn the_type_may_be_any_member() {
        check(r#"{"type":"response.output_text.delta","delta":"a"}"#, text(None, "a"));
        check(" { \"type\" : \"response.output_text.delta\" , \"delta\" : \"a\" } ", text(None, "a"));
        check(r#"{"delta":"a","item_id":"m","type":"response.output_text.delta"}"#, text(Some("m"), "a"));
        check(r#"{"type":"response.output\u005ftext.delta","delta":"a"}"#, text(None, "a"));
        check(r#"{"type":"response.output_text.deltas","delta":"a"}"#, None);
        check(r#"{"delta":"a"}"#, None);
    }

    #[test]
    fn escapes_in_text_are_decoded() {
        check(
            r#"{"type":"response.output_text.delta","delta":"\"\n\u00e4\ud83d\ude00","item_id":null,"logprobs":[]}"#,
            text(None, "\"\nä😀"),
        );
    }

    #[test]
    fn reasoning_deltas_without_index_are_ignored() {
        let index = 2;
        check(
            r#"{"type":"response.reasoning_summary_text.delta","delta":"a","summary_index":2,"item_id":"r"}"#,
            Some(ModelEvent::SummaryDelta { item_id: Some("r".into()), index, delta: "a".into() }),
        );
        check(
            r#"{"type":"response.reasoning_text.delta","delta":"a","content_index":2}"#,
            Some(ModelEvent::ReasoningDelta { item_id: None, index, delta: "a".into() }),
        );
        check(
            r#"{"type":"response.reasoning_summary_part.added","summary_index":2}"#,
            Some(ModelEvent::SummaryPartAdded { item_id: None, index }),
        );
        check(r#"{"type":"response.reasoning_summary_text.delta","delta":"a"}"#, None);
        check(r#"{"type":"response.reasoning_text.delta","delta":"a","summary_index":2}"#, None);
        check(r#"{"type":"response.reasoning_summary_part.added"}"#, None);
    }

    #[test]
    fn items_keep_their_id_and_output_index() {
        let item = ResponseItem::Reasoning { summary: Vec::new(), content: None, encrypted_content: None };
        check(
            r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"reasoning","id":"rs","summary":[]}}"#,
            Some(ModelEvent::ItemDone { item: item.clone(), id: Some("rs".into()), output_index: Some(3) }),
        );
        check(
            r#"{"item":{"summary":[],"type":"reasoning"},"type":"response.output_item.added"}"#,
            Some(ModelEvent::ItemAdded { item, id: None, output_index: None }),
        );
        check(r#"{"type":"response.output_item.done","item":{"type":"hologram"}}"#, None);
        check(r#"{"type":"response.output_item.done","item":{"type":"function_call"}}"#, None);
    }

    #[test]
    fn missing_usage_counts_as_absent_or_zero() {
        let completed = |usage| Some(ModelEvent::Completed { response_id: "r".into(), usage });
        let usage = |input, output, total| TokenUsage {
            total_tokens: total,
            input_tokens: input,
            cached_input_tokens: 0,
            cache_write_input_tokens: 0,
            output_tokens: output,
            reasoning_output_tokens: 0,
        };
        check(r#"{"type":"response.completed","response":{"id":"r"}}"#, completed(None));
        check(r#"{"type":"response.completed","response":{"id":"r","usage":null}}"#, completed(None));
        check(
            r#"{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":3,"output_tokens":4}}}"#,
            completed(Some(usage(3, 4, 7))),
        );
        check(
            r#"{"type":"response.completed","response":{"id":"r","usage":{"total_tokens":9,"input_tokens_details":null}}}"#,
            completed(Some(usage(0, 0, 9))),
        );
    }

    #[test]
    fn the_serving_model_is_read_from_headers() {
        for (json, expected) in [
            (r#"{"type":"x","headers":{"OpenAI-Model":"a"}}"#, Some("a")),
            (r#"{"type":"x","headers":{"x-openai-model":["a","b"]}}"#, Some("a")),
            (r#"{"type":"x","response":{"headers":{"openai-model":"b"}},"headers":{"openai-model":"a"}}"#, Some("b")),
            (r#"{"type":"x","response":{"headers":{}},"headers":null}"#, None),
            (r#"{"type":"x","text":"\"headers\""}"#, None),
        ] {
            assert_eq!(server_model(json).as_deref(), expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn malformed_events_do_not_panic(
            kind in "response\\.(output_text\\.delta|output_item\\.(added|done)|completed|failed|incomplete)|error|codex\\.rate_limits",
            rest in r#"(,"(item|delta|response|error|status|headers|rate_limits)":(null|7|"x"|\[\]|\{"id":1\}|\{"type":"message"\}|\{"error":\{"code":\[\]\}\}|\{)){0,4}"#,
        ) {
            let json = format!(r#"{{"type":"{kind}"{rest}}}"#);
            decode(&json, "url");
            server_model(&json);
        }

        #[test]
        fn any_text_round_trips(delta in ".*") {
            let json = serde_json::json!({ "type": "response.output_text.delta", "delta": delta }).to_string();
            prop_assert_eq!(decode(&json, "url"), DecodedEvent::Event(ModelEvent::TextDelta { item_id: None, delta }));
        }
    }
}

//! Decodes the event stream of a Messages response. Content blocks arrive one after the other, so each is emitted when
//! it stops.

use std::collections::HashSet;

use loomd_protocol::JsonValue;
use serde::Deserialize;
use serde_json::json;

use super::refusal;
use crate::compose::{Composer, ReasoningKind, new_id};
use crate::stream::Decode;
use crate::transcript::{ReasoningOrigin, ToolNames};
use crate::{ModelError, TokenUsage};

pub(super) struct Decoder {
    names: ToolNames,
    /// The call ids that this conversation has used.
    used_ids: HashSet<String>,
    id: String,
    usage: Usage,
    block: Option<OpenBlock>,
    stop: Option<StopInfo>,
    completed: bool,
}

/// The content block that is being streamed, unless it is text.
enum OpenBlock {
    Thinking,
    Call { id: String, name: String, input: JsonValue, json: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        delta: Delta,
    },
    ContentBlockStop,
    MessageDelta {
        delta: StopInfo,
        usage: Option<Usage>,
    },
    MessageStop,
    Error {
        error: JsonValue,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: String,
    usage: Option<Usage>,
    /// Content blocks that are complete already.
    #[serde(default)]
    content: Vec<JsonValue>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: JsonValue,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct StopInfo {
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
struct StopDetails {
    category: Option<String>,
    explanation: Option<String>,
}

/// Token counts since the start of the response. A field that an event omits keeps its last value.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Option<i64>,
    cache_creation_input_tokens: Option<i64>,
    cache_read_input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: i64,
}

impl Decoder {
    pub fn new(names: ToolNames, used_ids: HashSet<String>) -> Self {
        let (id, usage) = (String::new(), Usage::default());
        Self { names, used_ids, id, usage, block: None, stop: None, completed: false }
    }

    fn start(&mut self, block: ContentBlock, to: &mut Composer) {
        match block {
            ContentBlock::Text { text } => {
                to.close();
                to.text(text);
            }
            ContentBlock::Thinking { thinking, signature } => {
                to.close();
                to.begin_reasoning(ReasoningKind::Summary);
                to.reasoning(thinking, ReasoningKind::Summary);
                if !signature.is_empty() {
                    to.set_origin(ReasoningOrigin::Thinking { signature });
                }
                self.block = Some(OpenBlock::Thinking);
            }
            ContentBlock::RedactedThinking { data } => to.opaque_reasoning(&ReasoningOrigin::RedactedThinking { data }),
            ContentBlock::ToolUse { id, name, input } => {
                to.close();
                self.block = Some(OpenBlock::Call { id, name, input, json: String::new() });
            }
            ContentBlock::Other => to.close(),
        }
    }

    fn delta(&mut self, delta: Delta, to: &mut Composer) {
        match (delta, &mut self.block) {
            (Delta::Text { text }, _) => to.text(text),
            (Delta::Thinking { thinking }, Some(OpenBlock::Thinking)) => to.reasoning(thinking, ReasoningKind::Summary),
            (Delta::Signature { signature }, Some(OpenBlock::Thinking)) => {
                to.set_origin(ReasoningOrigin::Thinking { signature })
            }
            (Delta::InputJson { partial_json }, Some(OpenBlock::Call { json, .. })) => json.push_str(&partial_json),
            _ => {}
        }
    }

    fn stop(&mut self, to: &mut Composer) {
        match self.block.take() {
            Some(OpenBlock::Call { id, name, input, json }) => {
                let id = if id.is_empty() || self.used_ids.contains(&id) { new_id("call") } else { id };
                self.used_ids.insert(id.clone());
                let whole = || if input.is_object() { input.to_string() } else { "{}".into() };
                let arguments = if json.trim().is_empty() { whole() } else { json };
                to.item(self.names.call(&name, arguments, id));
            }
            Some(OpenBlock::Thinking) | None => to.close(),
        }
    }

    fn complete(&mut self, to: &mut Composer) -> Result<(), ModelError> {
        let (reason, details) = self.stop.take().map_or((None, None), |stop| (stop.stop_reason, stop.stop_details));
        match reason.as_deref() {
            Some("max_tokens") => {
                return Err(ModelError::incomplete("max_output_tokens", self.usage.token_usage()));
            }
            Some("model_context_window_exceeded") => {
                return Err(ModelError::ContextWindowExceeded { provider_message: None });
            }
            Some("refusal") => return Err(declined(details)),
            _ => {}
        }
        to.complete(std::mem::take(&mut self.id), self.usage.token_usage());
        self.completed = true;
        Ok(())
    }
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, to: &mut Composer) -> Result<(), ModelError> {
        let Ok(event) = serde_json::from_str::<Event>(data) else { return untyped(data).map_or(Ok(()), Err) };
        match event {
            Event::MessageStart { message } => {
                self.id = message.id;
                self.usage.update(message.usage);
                for block in message.content {
                    if let Ok(block) = serde_json::from_value(block) {
                        self.start(block, to);
                        self.stop(to);
                    }
                }
            }
            Event::ContentBlockStart { content_block } => self.start(content_block, to),
            Event::ContentBlockDelta { delta } => self.delta(delta, to),
            Event::ContentBlockStop => self.stop(to),
            Event::MessageDelta { delta, usage } => {
                self.usage.update(usage);
                self.stop = Some(delta);
            }
            Event::MessageStop => return self.complete(to),
            Event::Error { error } => return Err(refusal::stream_error(&error)),
            Event::Other => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Composer) -> Result<(), ModelError> {
        match self.completed {
            true => Ok(()),
            false => Err(ModelError::disconnected("stream closed before the response was complete")),
        }
    }

    fn to_events(&self, mut body: JsonValue) -> Vec<JsonValue> {
        if !body["content"].is_array() {
            return if body["error"].is_null() { Vec::new() } else { vec![body] };
        }
        let (reason, details) = (body["stop_reason"].take(), body["stop_details"].take());
        let stop = json!({ "stop_reason": reason, "stop_details": details });
        vec![
            json!({ "type": "message_start", "message": body }),
            json!({ "type": "message_delta", "delta": stop }),
            json!({ "type": "message_stop" }),
        ]
    }
}

/// Returns the error in an event without a `type`, `{"error": {…}}`, as proxies send it.
fn untyped(data: &str) -> Option<ModelError> {
    let event: JsonValue = serde_json::from_str(data).ok()?;
    event.get("error").filter(|error| !error.is_null()).map(refusal::stream_error)
}

/// The error for the stop reason `refusal`. Not retryable: the same input would be declined again.
fn declined(details: Option<StopDetails>) -> ModelError {
    let (category, explanation) = details.map_or((None, None), |details| (details.category, details.explanation));
    let category = category.map(|category| format!(" ({category})")).unwrap_or_default();
    let explanation = explanation.map(|words| format!(": {words}")).unwrap_or_else(|| ".".into());
    ModelError::InvalidPrompt(format!("The model declined to answer{category}{explanation}"))
}

impl Usage {
    fn update(&mut self, newer: Option<Self>) {
        let Some(newer) = newer else { return };
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details.take());
    }

    /// Returns the counts in the protocol's terms. Anthropic counts cached input beside `input_tokens`; the protocol
    /// includes it.
    fn token_usage(&self) -> Option<TokenUsage> {
        let output_tokens = self.output_tokens?;
        let cached_input_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let input_tokens = self.input_tokens.unwrap_or(0).saturating_add(cached_input_tokens).saturating_add(written);
        Some(TokenUsage {
            total_tokens: input_tokens.saturating_add(output_tokens),
            input_tokens,
            cached_input_tokens,
            cache_write_input_tokens: written,
            output_tokens,
            reasoning_output_tokens: self.output_tokens_details.as_ref().map_or(0, |details| details.thinking_tokens),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compose::tests::decode;

    const EVENTS: &[&str] = &[
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"d"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        r#"{"type":7}"#,
    ];

    proptest! {
        #[test]
        fn any_event_sequence_decodes_to_well_formed_events(
            events in proptest::collection::vec(proptest::sample::select(EVENTS), 0..16),
        ) {
            let events: Vec<_> = events.into_iter().map(str::to_owned).collect();
            decode(Decoder::new(ToolNames::default(), HashSet::new()), &events);
        }
    }
}

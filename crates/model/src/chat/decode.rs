//! Decodes chunks to events. Text and reasoning are emitted as they arrive; tool calls are assembled and emitted at the
//! end, because their fragments may arrive in any order.

use std::collections::HashSet;

use loomd_protocol::JsonValue;

use super::chunk::{CallDelta, Choice, Chunk};
use super::refusal;
use super::think::{Segment, ThinkSplitter};
use crate::compose::{Composer, ReasoningKind, new_id};
use crate::stream::Decode;
use crate::transcript::{ReasoningOrigin, ToolNames};
use crate::{ModelError, TokenUsage};

const REASONING_CONTENT: &str = "reasoning_content";
const REASONING: &str = "reasoning";
/// The origin of reasoning that arrived within the text, not in a field of its own.
const IN_TEXT: &str = "text";

pub(super) struct Decoder {
    names: ToolNames,
    /// The call ids that this conversation has used.
    used_ids: HashSet<String>,
    id: Option<String>,
    calls: Vec<PartialCall>,
    details: Vec<JsonValue>,
    think: ThinkSplitter,
    usage: Option<TokenUsage>,
    finish: Option<String>,
    /// Whether any text, reasoning or call has arrived.
    has_output: bool,
    completed: bool,
}

struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Decoder {
    pub fn new(names: ToolNames, used_ids: HashSet<String>) -> Self {
        Self {
            names,
            used_ids,
            id: None,
            calls: Vec::new(),
            details: Vec::new(),
            think: ThinkSplitter::default(),
            usage: None,
            finish: None,
            has_output: false,
            completed: false,
        }
    }

    fn read_choice(&mut self, choice: Choice, to: &mut Composer) -> Result<(), ModelError> {
        let delta = choice.delta;
        // Some servers send the same reasoning in both fields.
        match (delta.reasoning_content.filter(|text| !text.is_empty()), delta.reasoning) {
            (Some(text), _) => self.push_reasoning(text, REASONING_CONTENT, to),
            (None, Some(text)) => self.push_reasoning(text, REASONING, to),
            (None, None) => {}
        }
        if !delta.reasoning_details.is_empty() {
            self.push_details(delta.reasoning_details, to);
        }
        match delta.content {
            JsonValue::String(text) => self.push_content(&text, to),
            JsonValue::Array(parts) => {
                for part in parts {
                    self.push_part(&part, to);
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta.refusal {
            self.push_content(&refusal, to);
        }
        for call in delta.tool_calls {
            self.push_call(call);
        }
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(refusal::stream_error(&error));
        }
        if choice.finish_reason.is_some() {
            self.finish = choice.finish_reason;
        }
        Ok(())
    }

    fn push_reasoning(&mut self, text: String, field: &str, to: &mut Composer) {
        self.has_output |= !text.is_empty();
        to.reasoning(text, ReasoningKind::Content);
        // `reasoning_details` carry more than the field name, so they remain the origin.
        if self.details.is_empty() {
            to.set_origin(ReasoningOrigin::Field(field.into()));
        }
    }

    /// Joins fragments of the same detail: details are sent back whole.
    fn push_details(&mut self, details: Vec<JsonValue>, to: &mut Composer) {
        for detail in details {
            let same = |known: &&mut JsonValue| {
                known["index"] == detail["index"] && known["type"] == detail["type"] && !detail["index"].is_null()
            };
            match self.details.iter_mut().rev().find(same) {
                Some(known) => join(known, detail),
                None => self.details.push(detail),
            }
        }
        self.has_output = true;
        to.begin_reasoning(ReasoningKind::Content);
        to.set_origin(ReasoningOrigin::Details(self.details.clone().into()));
    }

    fn push_content(&mut self, text: &str, to: &mut Composer) {
        self.has_output |= !text.is_empty();
        for segment in self.think.push(text) {
            self.push_segment(segment, to);
        }
    }

    fn push_segment(&mut self, segment: Segment, to: &mut Composer) {
        match segment {
            Segment::Reasoning(text) => self.push_reasoning(text, IN_TEXT, to),
            Segment::Text(text) => to.text(text),
        }
    }

    /// Reads one part of a content list: text, or thinking as a list of texts.
    fn push_part(&mut self, part: &JsonValue, to: &mut Composer) {
        match part["type"].as_str() {
            Some("thinking") => {
                let thoughts = part["thinking"].as_array().into_iter().flatten();
                for text in thoughts.filter_map(|thought| thought["text"].as_str()) {
                    self.push_reasoning(text.into(), IN_TEXT, to);
                }
            }
            _ => self.push_content(part["text"].as_str().unwrap_or_default(), to),
        }
    }

    fn push_call(&mut self, delta: CallDelta) {
        self.has_output = true;
        let id = delta.id.unwrap_or_default();
        let name = delta.function.name.unwrap_or_default();
        let arguments = match delta.function.arguments {
            JsonValue::String(text) => text,
            JsonValue::Null => String::new(),
            object => object.to_string(),
        };
        // Servers that send no index, or the same one for all calls, distinguish calls by id.
        let known = match delta.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == delta.index),
            None => self.calls.len().checked_sub(1),
        };
        let another = |call: &PartialCall| !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty();
        match known.map(|at| &mut self.calls[at]).filter(|call| !another(call)) {
            Some(call) => {
                if call.id.is_empty() {
                    call.id = id;
                }
                // Some servers repeat the name with every fragment.
                if call.name != name {
                    call.name.push_str(&name);
                }
                call.arguments.push_str(&arguments);
            }
            None => self.calls.push(PartialCall { index: delta.index, id, name, arguments }),
        }
    }

    fn complete(&mut self, to: &mut Composer) -> Result<(), ModelError> {
        if let Some(segment) = self.think.finish() {
            self.push_segment(segment, to);
        }
        match self.finish.as_deref() {
            Some("length") => return Err(ModelError::incomplete("max_output_tokens", self.usage.take())),
            Some("content_filter") => return Err(ModelError::incomplete("content_filter", self.usage.take())),
            Some("error") => return Err(ModelError::disconnected("the provider failed in the middle of the response")),
            _ => {}
        }
        self.calls.sort_by_key(|call| call.index);
        for PartialCall { id, name, arguments, .. } in std::mem::take(&mut self.calls) {
            let id = if id.is_empty() || self.used_ids.contains(&id) { new_id("call") } else { id };
            self.used_ids.insert(id.clone());
            let arguments = if arguments.trim().is_empty() { "{}".into() } else { arguments };
            to.item(self.names.call(&name, arguments, id));
        }
        to.complete(self.id.take().unwrap_or_default(), self.usage.take());
        self.completed = true;
        Ok(())
    }
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, to: &mut Composer) -> Result<(), ModelError> {
        if matches!(data.trim(), "[DONE]" | "\"[DONE]\"") {
            // Some servers never send a `finish_reason`.
            return if self.has_output { self.complete(to) } else { self.end(to) };
        }
        let Ok(chunk) = serde_json::from_str::<Chunk>(data) else { return Ok(()) };
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(refusal::stream_error(&error));
        }
        if chunk.object.as_deref() == Some("error") {
            return Err(refusal::stream_error(&serde_json::from_str(data).unwrap_or_default()));
        }
        self.id = self.id.take().or(chunk.id);
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        if let Some(own) = chunk.x_groq {
            if let Some(error) = own.error {
                return Err(ModelError::disconnected(error));
            }
            self.usage = self.usage.take().or(own.usage.map(Into::into));
        }
        // Requests ask for one choice.
        chunk.choices.into_iter().next().map_or(Ok(()), |choice| self.read_choice(choice, to))
    }

    fn end(&mut self, to: &mut Composer) -> Result<(), ModelError> {
        match self.completed {
            true => Ok(()),
            false if self.finish.is_some() => self.complete(to),
            false => Err(ModelError::disconnected("stream closed before the response was complete")),
        }
    }

    /// A non-streaming body is a chunk with `message` in place of `delta`.
    fn to_events(&self, mut body: JsonValue) -> Vec<JsonValue> {
        if let Some(choice) = body.pointer_mut("/choices/0").and_then(JsonValue::as_object_mut)
            && let Some(mut message) = choice.remove("message")
        {
            let calls = message.get_mut("tool_calls").and_then(JsonValue::as_array_mut).into_iter().flatten();
            for (index, call) in calls.filter_map(JsonValue::as_object_mut).enumerate() {
                call.insert("index".into(), index.into());
            }
            choice.insert("delta".into(), message);
            return vec![body, "[DONE]".into()];
        }
        if is_error(&body) { vec![body] } else { Vec::new() }
    }
}

fn is_error(body: &JsonValue) -> bool {
    !body["error"].is_null() || body["object"] == "error"
}

/// Merges a fragment into a detail: `text`, `summary` and `data` are appended, other members replaced.
fn join(known: &mut JsonValue, piece: JsonValue) {
    let (Some(known), JsonValue::Object(piece)) = (known.as_object_mut(), piece) else { return };
    for (name, value) in piece {
        match (known.get_mut(&name), value) {
            (_, JsonValue::Null) => {}
            (Some(JsonValue::String(text)), JsonValue::String(more))
                if matches!(&*name, "text" | "summary" | "data") =>
            {
                text.push_str(&more);
            }
            (_, value) => _ = known.insert(name, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::compose::tests::decode;

    fn value() -> impl Strategy<Value = JsonValue> {
        prop_oneof![
            Just(JsonValue::Null),
            Just(json!(7)),
            Just(json!({})),
            Just(json!([1, "x"])),
            "(<think>|</think>|a|b c|){1,3}".prop_map(JsonValue::from),
            Just(json!([{ "type": "thinking", "thinking": [{ "text": "t" }] }, { "type": "text", "text": "u" }])),
            Just(json!([{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{" } }])),
            Just(json!([{ "index": 0, "function": { "arguments": "}" } }, { "id": "d" }, {}])),
            Just(json!([{ "type": "reasoning.text", "text": "t", "index": 0 }])),
        ]
    }

    fn chunk() -> impl Strategy<Value = String> {
        let field = prop_oneof![
            Just("content"),
            Just("reasoning"),
            Just("reasoning_content"),
            Just("reasoning_details"),
            Just("tool_calls"),
            Just("refusal"),
        ];
        let delta = proptest::collection::vec((field, value()), 0..3)
            .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<JsonValue>());
        let finish = prop_oneof![
            6 => Just(JsonValue::Null), 1 => Just(json!("stop")), 1 => Just(json!("length")), 1 => Just(json!(3)),
        ];
        prop_oneof![
            12 => (delta, finish).prop_map(|(delta, finish)| json!({ "choices": [{ "delta": delta, "finish_reason": finish }] }).to_string()),
            1 => value().prop_map(|value| json!({ "choices": value, "usage": value, "id": value }).to_string()),
            1 => Just("[DONE]".to_owned()),
            1 => Just("{".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn any_chunk_sequence_decodes_to_well_formed_events(chunks in proptest::collection::vec(chunk(), 0..12)) {
            decode(Decoder::new(ToolNames::default(), HashSet::new()), &chunks);
        }
    }
}

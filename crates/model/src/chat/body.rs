//! The body of a Chat Completions request.

use loomd_protocol::{JsonObject, JsonValue, ServiceTier};
use serde_json::json;

use super::quirks::{CallIds, Quirks, ReasoningReturn};
use crate::Request;
use crate::transcript::{
    AssistantBlock, ContentPart, ReasoningOrigin, RoleMessage, ToolNames, ToolOutput, Transcript, WireTool, common_id,
    digest,
};

/// The name that the API requires for an output schema.
const SCHEMA_NAME: &str = "codex_output_schema";

/// The text of a tool output whose images follow in a user message.
const IMAGE_FOLLOWS: &str = "(The picture follows.)";

const MAX_CALL_ID: usize = 40;

/// The fields in which reasoning may be sent back.
const FIELDS: &[&str] = &["reasoning_content", "reasoning"];

pub(super) fn body(request: &Request, transcript: &Transcript, names: &ToolNames, quirks: &Quirks) -> JsonValue {
    let mut body = JsonObject::new();
    let mut put = |name: &str, value: JsonValue| _ = body.insert(name.into(), value);
    put("model", request.model.as_str().into());
    put("messages", messages(request, transcript, quirks));
    put("stream", true.into());
    if quirks.stream_options {
        put("stream_options", json!({ "include_usage": true }));
    }
    if !names.tools.is_empty() {
        put("tools", tools(names));
        put("tool_choice", "auto".into());
        // Some models reject `false`; parallel calls are run one after the other then.
        if request.parallel_tool_calls {
            put("parallel_tool_calls", true.into());
        }
    }
    if let Some(effort) = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref()) {
        put("reasoning_effort", quirks.effort(effort.as_str()).into());
    }
    match &request.output_schema {
        Some(schema) if quirks.schemas => {
            let schema = json!({ "name": SCHEMA_NAME, "strict": true, "schema": schema });
            put("response_format", json!({ "type": "json_schema", "json_schema": schema }));
        }
        Some(_) => put("response_format", json!({ "type": "json_object" })),
        None => {}
    }
    if quirks.cache_key && !request.prompt_cache_key.is_empty() {
        put("prompt_cache_key", request.prompt_cache_key.as_str().into());
    }
    if quirks.openai_fields {
        if let Some(verbosity) = request.verbosity {
            put("verbosity", json!(verbosity));
        }
        if let Some(tier) = &request.service_tier {
            put("service_tier", if *tier == ServiceTier::Fast { "priority" } else { tier.as_str() }.into());
        }
    }
    body.into()
}

fn tools(names: &ToolNames) -> JsonValue {
    let tool = |tool: &WireTool| {
        let mut function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
        if tool.strict {
            function["strict"] = true.into();
        }
        json!({ "type": "function", "function": function })
    };
    names.tools.iter().map(tool).collect()
}

fn messages(request: &Request, transcript: &Transcript, quirks: &Quirks) -> JsonValue {
    let mut messages = Messages { list: Vec::new(), quirks };
    let role = if quirks.developer { "developer" } else { "system" };
    let mut instructions = vec![&*request.instructions];
    instructions.extend(transcript.preamble.iter().map(String::as_str));
    let schema_text;
    if let Some(schema) = request.output_schema.as_ref().filter(|_| !quirks.schemas) {
        schema_text = format!("Answer with nothing but JSON that follows this JSON Schema:\n{schema}");
        instructions.push(&schema_text);
    }
    instructions.retain(|text| !text.trim().is_empty());
    if !instructions.is_empty() {
        messages.list.push(json!({ "role": role, "content": instructions.join("\n\n") }));
    }
    // Reasoning from before the last user message is of no use to the model and is not sent.
    let current = transcript.messages.iter().rposition(|turn| matches!(turn, RoleMessage::User(_))).unwrap_or(0);
    for (index, turn) in transcript.messages.iter().enumerate() {
        match turn {
            RoleMessage::User(parts) => messages.user(parts),
            RoleMessage::Developer(text) if quirks.developer => {
                messages.list.push(json!({ "role": role, "content": text }));
            }
            RoleMessage::Developer(text) => messages.user(&[ContentPart::Text(text.clone())]),
            RoleMessage::Assistant(blocks) => messages.assistant(blocks, index > current),
            RoleMessage::Outputs(outputs) => messages.outputs(outputs),
        }
    }
    messages.list.into()
}

struct Messages<'a> {
    list: Vec<JsonValue>,
    quirks: &'a Quirks,
}

impl Messages<'_> {
    /// Appends to a preceding user message: some models reject two in a row.
    fn user(&mut self, parts: &[ContentPart]) {
        let mut content = match self.list.last_mut() {
            Some(last) if last["role"] == "user" => {
                let last = self.list.pop().unwrap_or_default();
                match &last["content"] {
                    JsonValue::Array(parts) => parts.clone(),
                    text => vec![json!({ "type": "text", "text": text })],
                }
            }
            _ => Vec::new(),
        };
        content.extend(parts.iter().map(|part| match part {
            ContentPart::Text(text) => json!({ "type": "text", "text": text }),
            ContentPart::Image { url } => json!({ "type": "image_url", "image_url": { "url": url } }),
        }));
        // A plain string where there are no images: some servers do not accept parts.
        let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
        let content = texts.map_or_else(|| JsonValue::Array(content.clone()), |texts| texts.join("\n\n").into());
        self.list.push(json!({ "role": "user", "content": content }));
    }

    fn assistant(&mut self, blocks: &[AssistantBlock], current: bool) {
        let (mut text, mut calls, mut details) = (Vec::new(), Vec::new(), Vec::new());
        let mut message = JsonObject::from_iter([("role".to_owned(), "assistant".into())]);
        for block in blocks {
            match block {
                AssistantBlock::Text(part) => text.push(part.as_str()),
                AssistantBlock::Call(call) => calls.push(json!({
                    "id": self.call_id(&call.id),
                    "type": "function",
                    "function": { "name": call.name, "arguments": JsonValue::Object(call.arguments.clone()).to_string() },
                })),
                AssistantBlock::Reasoning { origin: Some(ReasoningOrigin::Details(all)), .. } if self.quirks.reasoning == ReasoningReturn::Details => {
                    details.extend(all.as_array().into_iter().flatten().cloned());
                }
                AssistantBlock::Reasoning { text, origin: Some(ReasoningOrigin::Field(field)) }
                    if current && self.quirks.reasoning != ReasoningReturn::Dropped && FIELDS.contains(&&**field) =>
                {
                    let known = message.get(field).and_then(JsonValue::as_str).unwrap_or_default();
                    let joined = format!("{known}{text}");
                    message.insert(field.clone(), joined.into());
                }
                AssistantBlock::Reasoning { .. } => {}
            }
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        message.insert("content".into(), if text.is_empty() { JsonValue::Null } else { text.join("\n\n").into() });
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        if !details.is_empty() {
            message.insert("reasoning_details".into(), details.into());
        }
        self.list.push(message.into());
    }

    /// Tool messages hold text only; images follow in a user message.
    fn outputs(&mut self, outputs: &[ToolOutput]) {
        let mut images = Vec::new();
        for output in outputs {
            let texts = output.parts.iter().filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                ContentPart::Image { .. } => None,
            });
            let mut text = texts.collect::<Vec<_>>().join("\n");
            let before = images.len();
            images.extend(output.parts.iter().filter(|part| matches!(part, ContentPart::Image { .. })).cloned());
            if images.len() > before && text.is_empty() {
                text = IMAGE_FOLLOWS.into();
            }
            self.list.push(json!({ "role": "tool", "tool_call_id": self.call_id(&output.id), "content": text }));
        }
        if !images.is_empty() {
            self.user(&images);
        }
    }

    /// Maps a call id to one that the provider accepts. Deterministic, so calls and outputs stay matched.
    fn call_id(&self, id: &str) -> String {
        match self.quirks.call_ids {
            CallIds::Common => common_id(id, MAX_CALL_ID),
            CallIds::Nine if id.len() == 9 && id.chars().all(|char| char.is_ascii_alphanumeric()) => id.into(),
            CallIds::Nine => {
                const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
                let mut rest = digest(id);
                (0..9)
                    .map(|_| {
                        let digit = DIGITS[(rest % 36) as usize];
                        rest /= 36;
                        char::from(digit)
                    })
                    .collect()
            }
        }
    }
}

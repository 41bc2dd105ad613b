//! The body of a Messages request.

use std::collections::BTreeSet;

use loomd_protocol::{JsonObject, JsonValue, ReasoningSummary};
use serde_json::json;

use super::models::{Thinking, Traits, budget, effort};
use crate::transcript::{
    AssistantBlock, ContentPart, ReasoningOrigin, RoleMessage, ToolNames, ToolOutput, Transcript, common_id,
};
use crate::{Reasoning, Request};

/// User text where the API requires a user message and the transcript has none.
const MISSING_START: &str = "(The beginning of the conversation is missing.)";
const CONTINUE: &str = "(Go on.)";

/// The API's limit on the length of a call id.
const MAX_CALL_ID: usize = 64;

/// How many user messages, counted from the end, get a cache breakpoint: the last one for the next request to find, and
/// the one before it for this request to find.
const CACHED_TURNS: usize = 2;

pub(super) fn body(request: &Request, transcript: &Transcript, names: &ToolNames) -> JsonValue {
    let traits = Traits::of(&request.model);
    let messages = messages(transcript);
    let mut body = JsonObject::new();
    let mut put = |name: &str, value: JsonValue| _ = body.insert(name.into(), value);
    put("model", request.model.as_str().into());
    put("max_tokens", traits.max_tokens.into());
    put("stream", true.into());
    let system = system(request, transcript);
    if !system.is_empty() {
        put("system", system.into());
    }
    if !names.tools.is_empty() {
        put("tools", tools(names));
        let parallel = request.parallel_tool_calls;
        put("tool_choice", json!({ "type": "auto", "disable_parallel_tool_use": !parallel }));
    } else if let Some(past) = past_tools(transcript) {
        put("tools", past);
        put("tool_choice", json!({ "type": "none" }));
    }
    let mut output = JsonObject::new();
    if let Some(reasoning) = &request.reasoning {
        put_thinking(reasoning, traits.thinking, transcript, &mut output, &mut put);
    }
    if let Some(schema) = &request.output_schema {
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    if !output.is_empty() {
        put("output_config", output.into());
    }
    put("messages", messages.into());
    body.into()
}

/// Puts `thinking`, and `effort` into `output_config`, as the model's [`Thinking`] mode requires.
fn put_thinking(
    reasoning: &Reasoning,
    thinking: Thinking,
    transcript: &Transcript,
    output: &mut JsonObject,
    put: &mut impl FnMut(&str, JsonValue),
) {
    let wanted = reasoning.effort.as_ref().map(|effort| effort.as_str());
    match (thinking, wanted) {
        (Thinking::Never, _) => {}
        (_, Some("none")) => put("thinking", json!({ "type": "disabled" })),
        (Thinking::Adaptive, wanted) => {
            let shown = !matches!(reasoning.summary, None | Some(ReasoningSummary::None));
            let display = if shown { "summarized" } else { "omitted" };
            put("thinking", json!({ "type": "adaptive", "display": display }));
            if let Some(wanted) = wanted {
                output.insert("effort".into(), effort(wanted).into());
            }
        }
        // With a budget, a model may continue tool calls with thinking only if the calls began with a thinking block.
        (Thinking::Budget, _) if calls_without_reasoning(transcript) => {}
        (Thinking::Budget, wanted) => {
            put("thinking", json!({ "type": "enabled", "budget_tokens": budget(wanted.unwrap_or("medium")) }));
        }
    }
}

/// Whether the transcript ends with calls and their outputs that no thinking block precedes.
fn calls_without_reasoning(transcript: &Transcript) -> bool {
    let [.., RoleMessage::Assistant(blocks), RoleMessage::Outputs(_)] = transcript.messages.as_slice() else {
        return false;
    };
    !blocks.iter().any(|block| reasoning(block).is_some())
}

fn system(request: &Request, transcript: &Transcript) -> Vec<JsonValue> {
    let texts = std::iter::once(&*request.instructions).chain(transcript.preamble.iter().map(String::as_str));
    let mut blocks: Vec<_> = texts.filter(|text| !text.trim().is_empty()).map(text_block).collect();
    // Tools precede the system prompt in the cached prefix, so this breakpoint covers them, too.
    mark_for_cache(blocks.last_mut());
    blocks
}

fn tools(names: &ToolNames) -> JsonValue {
    let tools = names.tools.iter().map(|tool| {
        let mut json = json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
        if tool.strict {
            json["strict"] = true.into();
        }
        json
    });
    tools.collect()
}

/// Returns stub definitions of the tools in past calls: the API rejects `tool_use` blocks without `tools`.
fn past_tools(transcript: &Transcript) -> Option<JsonValue> {
    let blocks = transcript.messages.iter().filter_map(|turn| match turn {
        RoleMessage::Assistant(blocks) => Some(blocks),
        _ => None,
    });
    let called: BTreeSet<&str> = blocks
        .flatten()
        .filter_map(|block| match block {
            AssistantBlock::Call(call) => Some(&*call.name),
            _ => None,
        })
        .collect();
    let tool = |name| json!({ "name": name, "input_schema": { "type": "object" } });
    (!called.is_empty()).then(|| called.into_iter().map(tool).collect())
}

fn messages(transcript: &Transcript) -> Vec<JsonValue> {
    let mut messages: Vec<(&str, Vec<JsonValue>)> = Vec::new();
    for turn in &transcript.messages {
        let (role, blocks): (_, Vec<_>) = match turn {
            RoleMessage::User(parts) => ("user", parts.iter().filter_map(part).collect()),
            RoleMessage::Developer(text) => ("user", vec![text_block(text)]),
            RoleMessage::Outputs(outputs) => ("user", outputs.iter().map(output).collect()),
            // The API rejects an assistant message that consists of thinking only.
            RoleMessage::Assistant(blocks)
                if blocks.iter().all(|block| matches!(block, AssistantBlock::Reasoning { .. })) =>
            {
                continue;
            }
            RoleMessage::Assistant(blocks) => ("assistant", blocks.iter().filter_map(block).collect()),
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    if messages.first().is_none_or(|(role, _)| *role == "assistant") {
        messages.insert(0, ("user", vec![text_block(MISSING_START)]));
    }
    if messages.last().is_some_and(|(role, _)| *role == "assistant") {
        messages.push(("user", vec![text_block(CONTINUE)]));
    }
    for (_, content) in messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(CACHED_TURNS) {
        mark_for_cache(content.last_mut());
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn block(block: &AssistantBlock) -> Option<JsonValue> {
    match block {
        AssistantBlock::Text(text) => Some(text_block(text)),
        AssistantBlock::Call(call) => Some(json!({
            "type": "tool_use", "id": common_id(&call.id, MAX_CALL_ID), "name": call.name, "input": call.arguments,
        })),
        AssistantBlock::Reasoning { .. } => reasoning(block),
    }
}

/// Returns the thinking block of reasoning that came from this wire; `None` for any other block.
fn reasoning(block: &AssistantBlock) -> Option<JsonValue> {
    let AssistantBlock::Reasoning { text, origin } = block else { return None };
    match origin {
        Some(ReasoningOrigin::Thinking { signature }) => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        Some(ReasoningOrigin::RedactedThinking { data }) => Some(json!({ "type": "redacted_thinking", "data": data })),
        _ => None,
    }
}

fn output(output: &ToolOutput) -> JsonValue {
    let parts: Vec<_> = output.parts.iter().filter_map(part).collect();
    let id = common_id(&output.id, MAX_CALL_ID);
    match parts.as_slice() {
        // An output may be empty, but a text block may not.
        [] => json!({ "type": "tool_result", "tool_use_id": id }),
        parts => json!({ "type": "tool_result", "tool_use_id": id, "content": parts }),
    }
}

fn part(part: &ContentPart) -> Option<JsonValue> {
    match part {
        ContentPart::Text(text) if text.trim().is_empty() => None,
        ContentPart::Text(text) => Some(text_block(text)),
        ContentPart::Image { url } => {
            let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            let source = match inline {
                Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
                None => json!({ "type": "url", "url": url }),
            };
            Some(json!({ "type": "image", "source": source }))
        }
    }
}

fn text_block(text: &str) -> JsonValue {
    json!({ "type": "text", "text": text })
}

/// Sets a cache breakpoint: the prefix up to this block is cached.
fn mark_for_cache(block: Option<&mut JsonValue>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

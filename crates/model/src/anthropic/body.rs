//! The body of a request.

use std::collections::BTreeSet;

use loomd_protocol::{JsonObject, JsonValue, ReasoningSummary};
use serde_json::json;

use super::models::{Thinking, Traits, budget, effort};
use crate::transcript::{Block, Names, Output, Part, Seal, Transcript, Turn, common_id};
use crate::{Reasoning, Request};

/// Stand where the wire wants the user to speak and the conversation has nobody.
const BEFORE: &str = "(The beginning of the conversation is missing.)";
const GO_ON: &str = "(Go on.)";

/// The API's own bound.
const MAX_CALL_ID: usize = 64;

/// How many of the user's turns, from the end, are marked for the cache: the last, to be found next time, and
/// the one before, to be found now.
const CACHED_TURNS: usize = 2;

pub(super) fn body(request: &Request, transcript: &Transcript, names: &Names) -> JsonValue {
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
        think(reasoning, traits.thinking, transcript, &mut output, &mut put);
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

/// Says how to think.
fn think(
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
        // In the middle of its calls such a model can only go on thinking if it has been all along.
        (Thinking::Budget, _) if calls_without_thought(transcript) => {}
        (Thinking::Budget, wanted) => {
            put("thinking", json!({ "type": "enabled", "budget_tokens": budget(wanted.unwrap_or("medium")) }));
        }
    }
}

/// Whether the last turns are calls, with their outputs, that do not begin with a thought.
fn calls_without_thought(transcript: &Transcript) -> bool {
    let [.., Turn::Assistant(blocks), Turn::Outputs(_)] = transcript.turns.as_slice() else { return false };
    !blocks.iter().any(|block| reasoning(block).is_some())
}

fn system(request: &Request, transcript: &Transcript) -> Vec<JsonValue> {
    let texts = std::iter::once(&*request.instructions).chain(transcript.preamble.iter().map(String::as_str));
    let mut blocks: Vec<_> = texts.filter(|text| !text.trim().is_empty()).map(text_block).collect();
    // Tools stand before it, so the mark is for them, too.
    mark(blocks.last_mut());
    blocks
}

fn tools(names: &Names) -> JsonValue {
    let tools = names.tools.iter().map(|tool| {
        let mut json = json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
        if tool.strict {
            json["strict"] = true.into();
        }
        json
    });
    tools.collect()
}

/// A conversation with calls has to come with their tools, even if none may be called any more.
fn past_tools(transcript: &Transcript) -> Option<JsonValue> {
    let blocks = transcript.turns.iter().filter_map(|turn| match turn {
        Turn::Assistant(blocks) => Some(blocks),
        _ => None,
    });
    let called: BTreeSet<&str> = blocks
        .flatten()
        .filter_map(|block| match block {
            Block::Call(call) => Some(&*call.name),
            _ => None,
        })
        .collect();
    let tool = |name| json!({ "name": name, "input_schema": { "type": "object" } });
    (!called.is_empty()).then(|| called.into_iter().map(tool).collect())
}

fn messages(transcript: &Transcript) -> Vec<JsonValue> {
    let mut messages: Vec<(&str, Vec<JsonValue>)> = Vec::new();
    for turn in &transcript.turns {
        let (role, blocks): (_, Vec<_>) = match turn {
            Turn::User(parts) => ("user", parts.iter().filter_map(part).collect()),
            Turn::Developer(text) => ("user", vec![text_block(text)]),
            Turn::Outputs(outputs) => ("user", outputs.iter().map(output).collect()),
            // Thoughts that came to nothing are no turn.
            Turn::Assistant(blocks) if blocks.iter().all(|block| matches!(block, Block::Reasoning { .. })) => continue,
            Turn::Assistant(blocks) => ("assistant", blocks.iter().filter_map(block).collect()),
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    if messages.first().is_none_or(|(role, _)| *role == "assistant") {
        messages.insert(0, ("user", vec![text_block(BEFORE)]));
    }
    if messages.last().is_some_and(|(role, _)| *role == "assistant") {
        messages.push(("user", vec![text_block(GO_ON)]));
    }
    for (_, content) in messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(CACHED_TURNS) {
        mark(content.last_mut());
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn block(block: &Block) -> Option<JsonValue> {
    match block {
        Block::Text(text) => Some(text_block(text)),
        Block::Call(call) => Some(json!({
            "type": "tool_use", "id": common_id(&call.id, MAX_CALL_ID), "name": call.name, "input": call.arguments,
        })),
        Block::Reasoning { .. } => reasoning(block),
    }
}

/// Only what this wire has made.
fn reasoning(block: &Block) -> Option<JsonValue> {
    let Block::Reasoning { text, seal } = block else { return None };
    match seal {
        Some(Seal::Thinking { signature }) => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        Some(Seal::RedactedThinking { data }) => Some(json!({ "type": "redacted_thinking", "data": data })),
        _ => None,
    }
}

fn output(output: &Output) -> JsonValue {
    let parts: Vec<_> = output.parts.iter().filter_map(part).collect();
    let id = common_id(&output.id, MAX_CALL_ID);
    match parts.as_slice() {
        // An output may be empty, a block of text may not.
        [] => json!({ "type": "tool_result", "tool_use_id": id }),
        parts => json!({ "type": "tool_result", "tool_use_id": id, "content": parts }),
    }
}

fn part(part: &Part) -> Option<JsonValue> {
    match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(text_block(text)),
        Part::Image { url } => {
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

/// Everything up to here is worth keeping.
fn mark(block: Option<&mut JsonValue>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

//! Output items of the Responses API, as replies; [`Reply::then`] joins several.

use std::cell::Cell;

use loomd_protocol::JsonValue;
use serde_json::json;

use super::Reply;

/// A whole assistant message, without deltas.
pub fn message(text: &str) -> Reply {
    done(message_item(&fresh("msg"), text))
}

/// An assistant message in these deltas.
pub fn streamed(pieces: &[&str]) -> Reply {
    let id = fresh("msg");
    let added = added(json!({ "type": "message", "role": "assistant", "id": id, "content": [] }));
    let deltas = pieces.iter().fold(added, |reply, piece| reply.then(text_delta(piece)));
    deltas.then(done(message_item(&id, &pieces.concat())))
}

/// A delta of the message that was [`added`] last.
pub fn text_delta(piece: &str) -> Reply {
    Reply::event(json!({ "type": "response.output_text.delta", "delta": piece }))
}

/// A reasoning item, its summary and its raw text each in deltas.
pub fn reasoning(summary: &[&str], text: &[&str]) -> Reply {
    let id = fresh("rs");
    let mut reply = added(json!({ "type": "reasoning", "id": id, "summary": [] }));
    for (index, piece) in summary.iter().enumerate() {
        reply = reply
            .then(Reply::event(json!({ "type": "response.reasoning_summary_part.added", "summary_index": index })))
            .then(Reply::event(json!({
                "type": "response.reasoning_summary_text.delta", "delta": piece, "summary_index": index
            })));
    }
    for (index, piece) in text.iter().enumerate() {
        reply = reply.then(Reply::event(json!({
            "type": "response.reasoning_text.delta", "delta": piece, "content_index": index
        })));
    }
    let parts = |kind: &str, pieces: &[&str]| -> Vec<JsonValue> {
        pieces.iter().map(|piece| json!({ "type": kind, "text": piece })).collect()
    };
    let mut item = json!({ "type": "reasoning", "id": id, "summary": parts("summary_text", summary) });
    if !text.is_empty() {
        item["content"] = parts("reasoning_text", text).into();
    }
    reply.then(done(item))
}

/// A call of a function tool. Arguments that are a string are sent as they are, valid or not.
pub fn function_call(name: &str, arguments: JsonValue, call_id: &str) -> Reply {
    let arguments = match arguments {
        JsonValue::String(text) => text,
        value => value.to_string(),
    };
    done(json!({ "type": "function_call", "name": name, "arguments": arguments, "call_id": call_id }))
}

/// A shell command, through a tool that every thread has.
pub fn shell(command: &str) -> Reply {
    function_call("shell_command", json!({ "command": command, "login": false }), &fresh("call"))
}

/// A call of a freeform tool.
pub fn custom_call(name: &str, input: &str, call_id: &str) -> Reply {
    done(json!({ "type": "custom_tool_call", "name": name, "input": input, "call_id": call_id }))
}

/// The start of an item: `response.output_item.added`.
pub fn added(item: JsonValue) -> Reply {
    Reply::event(json!({ "type": "response.output_item.added", "item": item }))
}

/// A finished item: `response.output_item.done`.
pub fn done(item: JsonValue) -> Reply {
    Reply::event(json!({ "type": "response.output_item.done", "item": item }))
}

/// The token usage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, cached: 0, output: 5, reasoning: 0 }
    }
}

/// The end of the response: `response.completed`.
pub fn completed(usage: Usage) -> Reply {
    Reply::event(completed_event(&fresh("resp"), usage))
}

/// The response failed: `response.failed`.
pub fn failed(code: &str, message: &str) -> Reply {
    let error = json!({ "code": code, "message": message });
    Reply::event(json!({ "type": "response.failed", "response": { "id": fresh("resp"), "error": error } }))
}

/// The response is incomplete: `response.incomplete`.
pub fn incomplete(reason: &str) -> Reply {
    incomplete_after(reason, Usage::default())
}

/// Like [`incomplete`], with its usage.
pub fn incomplete_after(reason: &str, usage: Usage) -> Reply {
    let mut event = completed_event(&fresh("resp"), usage);
    event["type"] = "response.incomplete".into();
    event["response"]["incomplete_details"] = json!({ "reason": reason });
    Reply::event(event)
}

pub(super) fn created_event(id: &str) -> JsonValue {
    json!({ "type": "response.created", "response": { "id": id } })
}

pub(super) fn completed_event(id: &str, usage: Usage) -> JsonValue {
    json!({
        "type": "response.completed",
        "response": {
            "id": id,
            "usage": {
                "input_tokens": usage.input,
                "input_tokens_details": { "cached_tokens": usage.cached },
                "output_tokens": usage.output,
                "output_tokens_details": { "reasoning_tokens": usage.reasoning },
                "total_tokens": usage.input + usage.output,
            },
        },
    })
}

fn message_item(id: &str, text: &str) -> JsonValue {
    json!({ "type": "message", "role": "assistant", "id": id, "content": [{ "type": "output_text", "text": text }] })
}

/// An id that the test has not used yet. Counted per OS thread, so that a test gets the same ids whatever runs
/// concurrently.
fn fresh(prefix: &str) -> String {
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    LAST.set(LAST.get() + 1);
    format!("{prefix}_{}", LAST.get())
}

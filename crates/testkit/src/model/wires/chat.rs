//! Output in the format of Chat Completions.

use loomd_protocol::JsonValue;
use serde_json::json;

use super::ModelOutput::{self, *};
use super::{event, halves, took};
use crate::model::Reply;

/// A chunk with this delta.
pub fn chunk(delta: JsonValue) -> String {
    event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": null }], "usage": null }))
}

/// The chunk with the finish reason.
pub fn finish(reason: &str) -> String {
    event(&json!({ "id": "chatcmpl-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
}

/// The end of every stream.
pub const DONE: &str = "data: [DONE]\n\n";

pub(super) fn reply(outputs: &[ModelOutput]) -> Reply {
    let mut stream = chunk(json!({ "role": "assistant", "content": "" }));
    let (mut reason, mut calls) = ("stop", 0);
    for say in outputs {
        match *say {
            Text(pieces) => stream.extend(pieces.iter().map(|piece| chunk(json!({ "content": piece })))),
            Think(pieces) => stream.extend(pieces.iter().map(|piece| chunk(json!({ "reasoning_content": piece })))),
            Call(name, arguments, id) => {
                stream += &call_chunks(calls, name, arguments, id);
                (reason, calls) = ("tool_calls", calls + 1);
            }
            Custom(name, input, id) => {
                stream += &call_chunks(calls, name, &json!({ "input": input }).to_string(), id);
                (reason, calls) = ("tool_calls", calls + 1);
            }
            Took { .. } => {}
            Length => reason = "length",
            Fail(words) => return Reply::raw(stream + &event(&json!({ "error": { "message": words, "code": 500 } }))),
            Ping => stream += ": keep-alive\n\n",
            Cut => return Reply::raw(stream),
        }
    }
    let [input, cached, output, reasoning] = took(outputs);
    stream += &finish(reason);
    stream += &event(&json!({ "id": "chatcmpl-1", "choices": [], "usage": {
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": cached },
        "completion_tokens_details": { "reasoning_tokens": reasoning },
    }}));
    Reply::raw(stream + DONE)
}

fn call_chunks(index: u64, name: &str, arguments: &str, id: &str) -> String {
    let (first, second) = halves(arguments);
    let call = |call: JsonValue| chunk(json!({ "tool_calls": [call] }));
    call(json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }))
        + &call(json!({ "index": index, "function": { "arguments": first } }))
        + &call(json!({ "index": index, "function": { "arguments": second } }))
}

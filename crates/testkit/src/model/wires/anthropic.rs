//! Output in the format of Anthropic Messages.

use loomd_protocol::JsonValue;
use serde_json::json;

use super::ModelOutput::{self, *};
use super::{event, halves, took};
use crate::model::Reply;

pub(super) fn reply(outputs: &[ModelOutput]) -> Reply {
    let [input, cached, output, reasoning] = took(outputs);
    let usage = json!({ "input_tokens": input - cached, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0, "output_tokens": 1 });
    let mut stream = event(&json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message",
        "role": "assistant", "content": [], "model": "m", "stop_reason": null, "usage": usage } }));
    let (mut reason, mut index) = ("end_turn", 0);
    for say in outputs {
        let (block, deltas): (JsonValue, Vec<JsonValue>) = match *say {
            Text(pieces) => (
                json!({ "type": "text", "text": "" }),
                pieces.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect(),
            ),
            Think(pieces) => {
                let mut deltas: Vec<_> =
                    pieces.iter().map(|piece| json!({ "type": "thinking_delta", "thinking": piece })).collect();
                deltas.push(json!({ "type": "signature_delta", "signature": "SIG" }));
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas)
            }
            Call(name, arguments, id) => {
                reason = "tool_use";
                tool(name, arguments, id)
            }
            Custom(name, input, id) => {
                reason = "tool_use";
                tool(name, &json!({ "input": input }).to_string(), id)
            }
            Took { .. } => continue,
            Length => {
                reason = "max_tokens";
                continue;
            }
            Fail(words) => {
                let error = json!({ "type": "error", "error": { "type": "api_error", "message": words } });
                return Reply::raw(stream + &event(&error));
            }
            Ping => {
                stream += &event(&json!({ "type": "ping" }));
                continue;
            }
            Cut => return Reply::raw(stream),
        };
        stream += &event(&json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in deltas {
            stream += &event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        // A cut stream ends in the middle of a block.
        if outputs.last() != Some(&Cut) {
            stream += &event(&json!({ "type": "content_block_stop", "index": index }));
        }
        index += 1;
    }
    stream += &event(&json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": output, "output_tokens_details": { "thinking_tokens": reasoning } } }));
    Reply::raw(stream + &event(&json!({ "type": "message_stop" })))
}

fn tool(name: &str, arguments: &str, id: &str) -> (JsonValue, Vec<JsonValue>) {
    let (first, second) = halves(arguments);
    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    (block, [first, second].map(|json| json!({ "type": "input_json_delta", "partial_json": json })).to_vec())
}

//! Output in the format of the Responses API.

use serde_json::json;

use super::ModelOutput::{self, *};
use super::took;
use crate::model::{
    Reply, Usage, added, completed, custom_call, failed, function_call, incomplete_after, reasoning, streamed,
    text_delta,
};

pub(super) fn reply(outputs: &[ModelOutput]) -> Reply {
    let [input, cached, output, reasoned] = took(outputs).map(|tokens| tokens.unsigned_abs());
    let usage = Usage { input, cached, output, reasoning: reasoned };
    let mut reply = Reply::new();
    for say in outputs {
        let next = match *say {
            Text(pieces) if outputs.last() == Some(&Cut) => {
                let begun = added(json!({ "type": "message", "role": "assistant", "id": "msg_cut", "content": [] }));
                pieces.iter().fold(begun, |reply, piece| reply.then(text_delta(piece)))
            }
            Text(pieces) => streamed(pieces),
            // Each piece of a summary is a part of its own, so the text is sent in pieces.
            Think(pieces) => reasoning(&[], pieces),
            Call(name, arguments, id) => function_call(name, arguments.into(), id),
            Custom(name, input, id) => custom_call(name, input, id),
            Took { .. } => Reply::new(),
            Length => return reply.then(incomplete_after("max_output_tokens", usage)),
            Fail(words) => return reply.then(failed("server_error", words)),
            Ping => Reply::new().bytes(": ping\n\n"),
            Cut => return reply.unfinished(),
        };
        reply = reply.then(next);
    }
    reply.then(completed(usage))
}

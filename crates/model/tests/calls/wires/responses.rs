//! In the words of the Responses API.

use loomd_testkit::model::{
    Reply, Usage, completed, custom_call, failed, function_call, incomplete, reasoning, streamed,
};

use super::says::Say::{self, *};
use super::says::took;

pub fn reply(says: &[Say]) -> Reply {
    let mut reply = Reply::new();
    for say in says {
        let next = match *say {
            Text(pieces) => streamed(pieces),
            // Each piece is a part of its own in a summary, so the text itself is what comes in pieces.
            Think(pieces) => reasoning(&[], pieces),
            Call(name, arguments, id) => function_call(name, arguments.into(), id),
            Custom(name, input, id) => custom_call(name, input, id),
            Took { .. } => Reply::new(),
            Length => return reply.then(incomplete("max_output_tokens")),
            Fail(words) => return reply.then(failed("server_error", words)),
            Ping => Reply::new().bytes(": ping\n\n"),
            Cut => return reply.unfinished(),
        };
        reply = reply.then(next);
    }
    let Took { input, cached, output, reasoning } = took(says) else { unreachable!("it is always said") };
    let [input, cached, output, reasoning] = [input, cached, output, reasoning].map(|tokens| tokens as u64);
    reply.then(completed(Usage { input, cached, output, reasoning }))
}

//! `thread/sample` and `thread/sample/cancel`

use loomd_agent::parse_id;
use loomd_protocol::{
    RpcError, ThreadSampleCancelParams, ThreadSampleCancelResponse, ThreadSampleParams, ThreadSampleResponse, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The longest prompt, in bytes.
const MAX_PROMPT: usize = 4000;

/// `thread/sample`: answered when the model has.
pub(crate) async fn sample(cx: &Context, params: ThreadSampleParams) -> Handled<call::ThreadSample> {
    if params.expected_turn_id.is_empty() || params.prompt.is_empty() || params.prompt.len() > MAX_PROMPT {
        let message = format!("thread/sample requires expectedTurnId and a prompt of at most {MAX_PROMPT} bytes");
        return Err(RpcError::invalid_request(message));
    }
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let Some(request_id) = cx.answer.id() else { return Err(RpcError::internal("thread/sample has no request id")) };
    let cancel = cx.samples.add(request_id.clone());
    let samples = std::sync::Arc::clone(&cx.samples);
    let (reply, answer) = cx.answer.reply(move |sampled: ThreadSampleResponse| {
        samples.remove(&request_id);
        sampled
    });
    cx.app.threads().sample(id, params, cancel, reply).await;
    Ok(answer)
}

/// `thread/sample/cancel`
pub(crate) async fn cancel(cx: &Context, params: ThreadSampleCancelParams) -> Handled<call::ThreadSampleCancel> {
    cx.samples.cancel(&params.request_id);
    answer(ThreadSampleCancelResponse {})
}

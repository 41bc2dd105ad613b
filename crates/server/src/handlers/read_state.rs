//! `thread/readState/update`

use loomd_agent::{Presence, Refusal, parse_id};
use loomd_protocol::{
    RpcError, ServerNotification, ThreadReadStateChangedNotification, ThreadReadStateUpdateParams,
    ThreadReadStateUpdateResponse, call,
};

use super::organise::{presence, reason, run};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/readState/update`: subscribers are notified before the answer.
pub(crate) async fn update(cx: &Context, params: ThreadReadStateUpdateParams) -> Handled<call::ThreadReadStateUpdate> {
    let ThreadReadStateUpdateParams { thread_id, expected_revision, operation } = params;
    let id = parse_id(&thread_id).map_err(|refusal| match refusal {
        Refusal::Invalid(message) => RpcError::invalid_params(message),
        other => wire_error(other),
    })?;
    match presence(cx, id).await? {
        Presence::Stored => {}
        Presence::Pending | Presence::Ephemeral => {
            return Err(RpcError::invalid_request("thread read state unavailable"));
        }
        Presence::Missing => {
            let message = format!("thread not loaded: {id}");
            return Err(RpcError::invalid_request(message).with_data(reason("threadNotFound")));
        }
    }
    let read_state = run(cx, move |organiser| organiser.update_read_state(id, &expected_revision, operation)).await?;
    let changed = ThreadReadStateChangedNotification { thread_id: id.to_string(), read_state: read_state.clone() };
    cx.app.threads().notify_subscribers(id, ServerNotification::ThreadReadStateChanged(changed)).await;
    answer(ThreadReadStateUpdateResponse { read_state })
}

//! `thread/queue/*`

use loomd_agent::parse_id;
use loomd_protocol::{
    ThreadQueueAddParams, ThreadQueueAddResponse, ThreadQueueDeleteParams, ThreadQueueDeleteResponse,
    ThreadQueueListParams, ThreadQueueReorderParams, ThreadQueueReorderResponse, ThreadQueueStartParams,
    ThreadQueueStartResponse, ThreadQueueUpdateParams, ThreadQueueUpdateResponse, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/queue/add`
pub(crate) async fn add(cx: &Context, params: ThreadQueueAddParams) -> Handled<call::ThreadQueueAdd> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|queued_submission| ThreadQueueAddResponse { queued_submission });
    cx.app.threads().enqueue(id, params.client_user_message_id, params.input, reply).await;
    Ok(answer)
}

/// `thread/queue/list`
pub(crate) async fn list(cx: &Context, params: ThreadQueueListParams) -> Handled<call::ThreadQueueList> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    answer(cx.app.threads().queue(id, params.cursor.as_deref(), params.limit).await.map_err(wire_error)?)
}

/// `thread/queue/update`
pub(crate) async fn update(cx: &Context, params: ThreadQueueUpdateParams) -> Handled<call::ThreadQueueUpdate> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|queued_submission| ThreadQueueUpdateResponse { queued_submission });
    cx.app.threads().update_queued(id, params.queued_submission_id, params.input, reply).await;
    Ok(answer)
}

/// `thread/queue/delete`
pub(crate) async fn delete(cx: &Context, params: ThreadQueueDeleteParams) -> Handled<call::ThreadQueueDelete> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|deleted| ThreadQueueDeleteResponse { deleted });
    cx.app.threads().delete_queued(id, params.queued_submission_id, reply).await;
    Ok(answer)
}

/// `thread/queue/reorder`
pub(crate) async fn reorder(cx: &Context, params: ThreadQueueReorderParams) -> Handled<call::ThreadQueueReorder> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadQueueReorderResponse {});
    cx.app.threads().reorder_queue(id, params.queued_submission_ids, reply).await;
    Ok(answer)
}

/// `thread/queue/start`
pub(crate) async fn start(cx: &Context, params: ThreadQueueStartParams) -> Handled<call::ThreadQueueStart> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|turn| ThreadQueueStartResponse { turn });
    cx.app.threads().start_queued(id, params.queued_submission_id, reply).await;
    Ok(answer)
}

//! `thread/attachment/*` and `thread/attachmentOwner/list`

use loomd_agent::{Presence, Refusal, parse_id};
use loomd_organiser::NewAttachment;
use loomd_protocol::{
    RpcError, ServerNotification, ThreadAttachmentAddOutcome, ThreadAttachmentAddParams, ThreadAttachmentAddResponse,
    ThreadAttachmentIfExists, ThreadAttachmentListParams, ThreadAttachmentListResponse, ThreadAttachmentOperation,
    ThreadAttachmentOwner, ThreadAttachmentOwnerListParams, ThreadAttachmentOwnerListResponse,
    ThreadAttachmentRemoveParams, ThreadAttachmentRemoveResponse, ThreadAttachmentUpdatedNotification, call,
};
use loomd_store::{ThreadId, page_limit};
use serde_json::{Value, json};

use super::organise::{presence, refused, run, thread_not_found};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/attachment/add`
pub(crate) async fn add(cx: &Context, params: ThreadAttachmentAddParams) -> Handled<call::ThreadAttachmentAdd> {
    let thread = thread_id(&params.thread_id)?;
    let new = NewAttachment {
        thread,
        attachment_type: params.attachment_type,
        identity_key: params.identity_key,
        payload: params.payload,
        replace: params.if_exists == Some(ThreadAttachmentIfExists::Replace),
    };
    new.check().map_err(refused)?;
    require_stored(cx, thread).await?;
    let added = run(cx, move |organiser| organiser.attach(new)).await?;
    let outcome = match added.created {
        true => ThreadAttachmentAddOutcome::Created,
        false => ThreadAttachmentAddOutcome::Existing,
    };
    let (responder, sent) = cx.answer.responder::<call::ThreadAttachmentAdd>();
    let (kind, key) = (added.attachment.attachment_type.clone(), added.attachment.identity_key.clone());
    let id = added.attachment.id.clone();
    responder.send(Ok(ThreadAttachmentAddResponse { outcome, attachment: added.attachment }));
    if let Some(replaced) = added.replaced {
        notify(cx, thread, &kind, &key, replaced, ThreadAttachmentOperation::Deleted).await;
    }
    if added.created {
        notify(cx, thread, &kind, &key, id, ThreadAttachmentOperation::Created).await;
    }
    Ok(sent)
}

/// `thread/attachment/list`: empty for a thread that does not exist.
pub(crate) async fn list(cx: &Context, params: ThreadAttachmentListParams) -> Handled<call::ThreadAttachmentList> {
    let ThreadAttachmentListParams { thread_id: id, cursor, limit } = params;
    let thread = thread_id(&id)?;
    let page = run(cx, move |organiser| organiser.attachments(thread, cursor.as_deref(), limit)).await?;
    answer(ThreadAttachmentListResponse { data: page.rows, next_cursor: page.next })
}

/// `thread/attachment/remove`: fine for a record that is not there.
pub(crate) async fn remove(
    cx: &Context,
    params: ThreadAttachmentRemoveParams,
) -> Handled<call::ThreadAttachmentRemove> {
    let ThreadAttachmentRemoveParams { thread_id: id, attachment_type, identity_key } = params;
    let thread = thread_id(&id)?;
    let (kind, key) = (attachment_type.clone(), identity_key.clone());
    let removed = run(cx, move |organiser| organiser.detach(thread, &attachment_type, &identity_key)).await?;
    let (responder, sent) = cx.answer.responder::<call::ThreadAttachmentRemove>();
    responder.send(Ok(ThreadAttachmentRemoveResponse {}));
    if let Some(id) = removed {
        notify(cx, thread, &kind, &key, id, ThreadAttachmentOperation::Deleted).await;
    }
    Ok(sent)
}

/// `thread/attachmentOwner/list`
pub(crate) async fn owners(
    cx: &Context,
    params: ThreadAttachmentOwnerListParams,
) -> Handled<call::ThreadAttachmentOwnerList> {
    let ThreadAttachmentOwnerListParams { attachment_type, identity_key, archived, cursor, limit } = params;
    let query = json!(["owners", attachment_type, identity_key, archived]);
    let after = cursor.map(|cursor| decode(&query, &cursor)).transpose()?;
    let ids = run(cx, move |organiser| organiser.attachment_owners(&attachment_type, &identity_key, after)).await?;
    let limit = page_limit(limit);
    let mut data: Vec<ThreadAttachmentOwner> = Vec::new();
    let mut more = false;
    for id in ids {
        let Some(is_archived) = cx.app.threads().is_archived(id).await.map_err(wire_error)? else { continue };
        if archived.is_some_and(|wanted| wanted != is_archived) {
            continue;
        }
        if data.len() == limit {
            more = true;
            break;
        }
        data.push(ThreadAttachmentOwner { thread_id: id.to_string(), archived: is_archived });
    }
    let next_cursor = data.last().filter(|_| more).map(|last| json!([query, last.thread_id]).to_string());
    answer(ThreadAttachmentOwnerListResponse { data, next_cursor })
}

fn decode(query: &Value, cursor: &str) -> Result<ThreadId, RpcError> {
    let place = match serde_json::from_str::<(Value, ThreadId)>(cursor) {
        Ok((of, place)) if of == *query => Some(place),
        _ => None,
    };
    place.ok_or_else(|| RpcError::invalid_params("invalid pagination cursor"))
}

/// The id of a thread; values are refused with `-32602` here.
fn thread_id(text: &str) -> Result<ThreadId, RpcError> {
    parse_id(text).map_err(|refusal| match refusal {
        Refusal::Invalid(message) => RpcError::invalid_params(message),
        other => wire_error(other),
    })
}

async fn require_stored(cx: &Context, thread: ThreadId) -> Result<(), RpcError> {
    match presence(cx, thread).await? {
        Presence::Stored => Ok(()),
        _ => Err(thread_not_found(&thread.to_string(), RpcError::INVALID_PARAMS)),
    }
}

async fn notify(
    cx: &Context,
    thread: ThreadId,
    attachment_type: &str,
    identity_key: &str,
    attachment_id: String,
    operation: ThreadAttachmentOperation,
) {
    let updated = ThreadAttachmentUpdatedNotification {
        thread_id: thread.to_string(),
        attachment_type: attachment_type.into(),
        identity_key: identity_key.into(),
        attachment_id,
        operation,
    };
    cx.app.broadcast(ServerNotification::ThreadAttachmentUpdated(updated)).await;
}

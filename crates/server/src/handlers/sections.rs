//! `threadSection/*` and `thread/section/move`

use loomd_agent::{Presence, parse_id};
use loomd_organiser::Error;
use loomd_protocol::{
    RpcError, ThreadSectionCreateParams, ThreadSectionCreateResponse, ThreadSectionDeleteParams,
    ThreadSectionDeleteResponse, ThreadSectionListParams, ThreadSectionListResponse, ThreadSectionMoveParams,
    ThreadSectionMoveResponse, ThreadSectionUpdateParams, ThreadSectionUpdateResponse, call,
};

use super::organise::{organiser, presence, reason, refused, run, thread_not_found};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `threadSection/list`
pub(crate) async fn list(cx: &Context, params: ThreadSectionListParams) -> Handled<call::ThreadSectionList> {
    let ThreadSectionListParams { cursor, limit } = params;
    let page = run(cx, move |organiser| organiser.sections(cursor.as_deref(), limit)).await?;
    answer(ThreadSectionListResponse { data: page.rows, next_cursor: page.next })
}

/// `threadSection/create`
pub(crate) async fn create(cx: &Context, params: ThreadSectionCreateParams) -> Handled<call::ThreadSectionCreate> {
    let ThreadSectionCreateParams { name, appearance } = params;
    let section = run(cx, move |organiser| organiser.create_section(&name, appearance)).await?;
    answer(ThreadSectionCreateResponse { section })
}

/// `threadSection/update`
pub(crate) async fn update(cx: &Context, params: ThreadSectionUpdateParams) -> Handled<call::ThreadSectionUpdate> {
    let ThreadSectionUpdateParams { section_id, name, appearance } = params;
    let section = run(cx, move |organiser| organiser.update_section(&section_id, &name, appearance)).await?;
    answer(ThreadSectionUpdateResponse { section })
}

/// `threadSection/delete`
pub(crate) async fn delete(cx: &Context, params: ThreadSectionDeleteParams) -> Handled<call::ThreadSectionDelete> {
    run(cx, move |organiser| organiser.delete_section(&params.section_id)).await?;
    answer(ThreadSectionDeleteResponse {})
}

/// `thread/section/move`: into a section, inside of it, or out of all of them.
pub(crate) async fn move_thread(cx: &Context, params: ThreadSectionMoveParams) -> Handled<call::ThreadSectionMove> {
    let ThreadSectionMoveParams { thread_id, section_id, before_thread_id } = params;
    let id = parse_id(&thread_id).map_err(wire_error)?;
    let before = before_thread_id.map(|before| parse_id(&before)).transpose().map_err(wire_error)?;
    if section_id.is_none() && before.is_some() {
        return Err(RpcError::invalid_request("beforeThreadId requires a non-null sectionId"));
    }
    if before == Some(id) {
        return Err(RpcError::invalid_request(format!("thread {id} cannot be moved before itself")));
    }
    match presence(cx, id).await? {
        Presence::Stored | Presence::Pending => {}
        Presence::Ephemeral => {
            let message = format!("ephemeral thread does not support section moves: {id}");
            return Err(RpcError::invalid_request(message));
        }
        Presence::Missing => return Err(thread_not_found(&id.to_string(), RpcError::INVALID_REQUEST)),
    }
    let moved = organiser(cx).run(move |organiser| match &section_id {
        Some(section) => organiser.move_to_section(id, section, before),
        None => organiser.leave_section(id).map(|_| ()),
    });
    moved.await.map_err(|error| match error {
        Error::SectionNotFound(section) => {
            RpcError::invalid_request(format!("section {section} does not exist")).with_data(reason("sectionNotFound"))
        }
        Error::NotInSection { .. } => RpcError::invalid_request(error.to_string()),
        error => refused(error),
    })?;
    answer(ThreadSectionMoveResponse {})
}

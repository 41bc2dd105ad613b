//! `thread/list`

use std::collections::HashMap;

use loomd_protocol::{RpcError, SortDirection, Thread, ThreadListParams, ThreadListResponse, ThreadSortKey, call};
use loomd_store::{BadQuery, ListQuery, ThreadId, page_limit};
use serde::{Deserialize, Serialize};

use super::organise::{add_facts, run};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The most threads of a section that are listed in their own order.
const MAX_IN_SECTION: usize = 10_000;

/// `thread/list`
pub(crate) async fn list(cx: &Context, mut params: ThreadListParams) -> Handled<call::ThreadList> {
    let by_position = params.sort_key == Some(ThreadSortKey::SectionPosition);
    if by_position && params.section_id.is_none() {
        return Err(RpcError::invalid_request("section-position sorting requires a section filter"));
    }
    let section = match params.section_id.take() {
        Some(section) => Some(run(cx, move |organiser| organiser.threads_in_section(&section)).await?),
        None => None,
    };
    let project = match params.project_id.take() {
        Some(project) => {
            let threads = run(cx, move |organiser| {
                organiser.project(&project)?;
                organiser.project_threads(&project)
            });
            Some(threads.await?)
        }
        None => None,
    };
    let only = match (section.clone(), project) {
        (None, only) | (only, None) => only,
        (Some(section), Some(project)) => Some(section.into_iter().filter(|id| project.contains(id)).collect()),
    };
    let direction = params.sort_direction;
    let (cursor, limit) = (params.cursor.clone(), params.limit);
    if by_position {
        params.cursor = None;
    }
    let query = ListQuery::from_params(params, &cx.app.agent.default_provider()).map_err(refused)?;
    let query = ListQuery { only, ..query };
    let listed = match section.filter(|_| by_position) {
        Some(order) => in_section(cx, query, &order, direction, cursor.as_deref(), limit).await?,
        None => {
            let pending = if query.only.is_some() && query.after.is_none() { unstored(cx, &query) } else { Vec::new() };
            let (mut data, page) = cx.app.threads().list(query).await.map_err(wire_error)?;
            data.splice(0..0, pending);
            ListedThreads {
                data,
                next: page.next.map(|cursor| cursor.to_string()),
                back: page.back.map(|cursor| cursor.to_string()),
            }
        }
    };
    let ListedThreads { mut data, next, back } = listed;
    let read_states = add_facts(cx, &mut data).await;
    answer(ThreadListResponse { data, next_cursor: next, backwards_cursor: back, read_states: Some(read_states) })
}

struct ListedThreads {
    data: Vec<Thread>,
    next: Option<String>,
    back: Option<String>,
}

fn refused(error: BadQuery) -> RpcError {
    match error {
        BadQuery::Excluded(_) => RpcError::invalid_params(error.to_string()),
        _ => RpcError::invalid_request(error.to_string()),
    }
}

/// A place in the order of a section. It is found again by its thread, or where that stood if it has left.
#[derive(Serialize, Deserialize)]
struct SectionCursor {
    position: usize,
    thread: ThreadId,
    #[serde(default)]
    inclusive: bool,
}

/// The threads of a section that a query wants, in the section's order.
async fn in_section(
    cx: &Context,
    query: ListQuery,
    order: &[ThreadId],
    direction: Option<SortDirection>,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<ListedThreads, RpcError> {
    let bad = || RpcError::invalid_request(format!("invalid cursor: {}", cursor.unwrap_or_default()));
    let cursor: Option<SectionCursor> = cursor.map(|text| serde_json::from_str(text).map_err(|_| bad())).transpose()?;
    let pending = unstored(cx, &query);
    let all = ListQuery { limit: MAX_IN_SECTION, after: None, direction: SortDirection::Desc, ..query };
    let (rows, _) = cx.app.threads().list(all).await.map_err(wire_error)?;
    let mut rows: HashMap<String, Thread> =
        rows.into_iter().chain(pending).map(|thread| (thread.id.clone(), thread)).collect();
    let mut places: Vec<(usize, ThreadId)> = order.iter().copied().enumerate().collect();
    let ascending = direction.unwrap_or(SortDirection::Asc) == SortDirection::Asc;
    if !ascending {
        places.reverse();
    }
    if let Some(cursor) = cursor {
        let at = order.iter().position(|id| *id == cursor.thread).unwrap_or(cursor.position);
        places.retain(|(position, _)| match position.cmp(&at) {
            std::cmp::Ordering::Equal => cursor.inclusive,
            beyond => beyond.is_gt() == ascending,
        });
    }
    places.retain(|(_, id)| rows.contains_key(&id.to_string()));
    let limit = page_limit(limit);
    let more = places.len() > limit;
    places.truncate(limit);
    let encode = |(position, thread): &(usize, ThreadId), inclusive| {
        serde_json::to_string(&SectionCursor { position: *position, thread: *thread, inclusive }).ok()
    };
    Ok(ListedThreads {
        next: places.last().filter(|_| more).and_then(|place| encode(place, false)),
        back: places.first().and_then(|place| encode(place, true)),
        data: places.iter().filter_map(|(_, id)| rows.remove(&id.to_string())).collect(),
    })
}

/// Threads of a section or project that are loaded and not stored before their first message.
fn unstored(cx: &Context, query: &ListQuery) -> Vec<Thread> {
    let mut found = Vec::new();
    if query.archived || query.search.is_some() || query.parent.is_some() || query.ancestor.is_some() {
        return found;
    }
    for id in query.only.iter().flatten().filter(|id| !query.excluded.contains(id)) {
        found.extend(cx.app.threads().pending(*id));
    }
    found
}

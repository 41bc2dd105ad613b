//! `thread/search`, `thread/searchOccurrences`, `thread/items/read` and `thread/timeline/list`

use loomd_agent::{Presence, parse_id};
use loomd_protocol::{
    Call, RpcError, ThreadItemsReadParams, ThreadItemsReadResponse, ThreadSearchOccurrencesParams, ThreadSearchParams,
    ThreadSearchResponse, ThreadSearchResult, ThreadSearchSortKey, ThreadSortKey, ThreadTimelineListParams, call,
};
use loomd_store::search::SearchQuery;
use loomd_store::{ListQuery, ThreadId, page_limit};

use super::organise::{add_facts, presence};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The most ids in a `thread/items/read`.
const MAX_ITEMS: usize = 100;

/// `thread/search`: one hit for each thread.
pub(crate) async fn search(cx: &Context, params: ThreadSearchParams) -> Handled<call::ThreadSearch> {
    let term = params.search_term.trim();
    if term.is_empty() {
        return Err(RpcError::invalid_request("thread/search requires a non-empty searchTerm"));
    }
    let defaults = ListQuery::new(cx.app.agent.default_provider());
    let after = params.cursor.map(|cursor| cursor.parse()).transpose();
    let list = ListQuery {
        sort: match params.sort_key {
            None | Some(ThreadSearchSortKey::CreatedAt) => ThreadSortKey::CreatedAt,
            Some(ThreadSearchSortKey::UpdatedAt) => ThreadSortKey::UpdatedAt,
            Some(ThreadSearchSortKey::RecencyAt) => ThreadSortKey::RecencyAt,
        },
        direction: params.sort_direction.unwrap_or(defaults.direction),
        limit: page_limit(params.limit),
        after: after.map_err(|error: loomd_store::BadCursor| RpcError::invalid_request(error.to_string()))?,
        archived: params.archived.unwrap_or(false),
        kinds: params.source_kinds.filter(|kinds| !kinds.is_empty()),
        ..defaults
    };
    let query = SearchQuery { list, term: term.to_owned() };
    let (hits, page) = cx.app.threads().search(query).await.map_err(wire_error)?;
    let (mut threads, snippets): (Vec<_>, Vec<_>) = hits.into_iter().unzip();
    add_facts(cx, &mut threads).await;
    let result = |(thread, snippet)| ThreadSearchResult { thread, snippet };
    answer(ThreadSearchResponse {
        data: threads.into_iter().zip(snippets).map(result).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
        backwards_cursor: page.back.map(|cursor| cursor.to_string()),
    })
}

/// `thread/searchOccurrences`: every hit in one thread.
pub(crate) async fn occurrences(
    cx: &Context,
    params: ThreadSearchOccurrencesParams,
) -> Handled<call::ThreadSearchOccurrences> {
    let ThreadSearchOccurrencesParams { thread_id, search_term, cursor, limit } = params;
    let id = parse_id(&thread_id).map_err(wire_error)?;
    if search_term.trim().is_empty() {
        return Err(RpcError::invalid_request("thread/searchOccurrences requires a non-empty searchTerm"));
    }
    require_history::<call::ThreadSearchOccurrences>(cx, id).await?;
    answer(cx.app.threads().occurrences(id, &search_term, cursor.as_deref(), limit).await.map_err(wire_error)?)
}

/// `thread/items/read`: unknown items are left out.
pub(crate) async fn read_items(cx: &Context, params: ThreadItemsReadParams) -> Handled<call::ThreadItemsRead> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    if !(1..=MAX_ITEMS).contains(&params.item_ids.len()) {
        return Err(RpcError::invalid_request(format!("itemIds must contain 1 to {MAX_ITEMS} IDs")));
    }
    require_history::<call::ThreadItemsRead>(cx, id).await?;
    let items = cx.app.threads().items_of_turn(id, &params.turn_id, &params.item_ids).await;
    answer(ThreadItemsReadResponse { data: items.map_err(wire_error)? })
}

/// `thread/timeline/list`
pub(crate) async fn timeline(cx: &Context, params: ThreadTimelineListParams) -> Handled<call::ThreadTimelineList> {
    let ThreadTimelineListParams { thread_id, cursor, limit } = params;
    let id = parse_id(&thread_id).map_err(wire_error)?;
    require_history::<call::ThreadTimelineList>(cx, id).await?;
    answer(cx.app.threads().timeline(id, cursor.as_deref(), limit).await.map_err(wire_error)?)
}

/// Refuses a call about the history of a thread that has none on disk.
async fn require_history<C: Call>(cx: &Context, id: ThreadId) -> Result<(), RpcError> {
    match presence(cx, id).await? {
        Presence::Stored => Ok(()),
        _ => Err(RpcError::not_supported(C::METHOD)),
    }
}

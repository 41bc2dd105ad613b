//! `thread/revert`, `thread/inject_items`, and the pages in the answer to `thread/resume`.

use loomd_agent::{PageRequest, Reverted, parse_id};
use loomd_protocol::{
    JsonValue, ResponseItem, RpcError, SortDirection, ThreadInjectItemsParams, ThreadInjectItemsResponse,
    ThreadResumeParams, ThreadRevertParams, ThreadRevertResponse, ThreadTurnsListResponse, TurnItemsView, call,
};
use loomd_store::ThreadId;

use crate::answer::Handled;
use crate::context::Context;
use crate::refusals::wire_error;

/// The most items of one `thread/inject_items`.
const MAX_INJECTED: usize = 1000;

/// `thread/revert`
pub(crate) async fn revert(cx: &Context, params: ThreadRevertParams) -> Handled<call::ThreadRevert> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|reverted: Reverted| ThreadRevertResponse {
        thread: reverted.thread,
        turns_backwards_cursor: reverted.turns_backwards_cursor,
        items_backwards_cursor: reverted.items_backwards_cursor,
    });
    cx.app.threads().revert(id, params.before_turn_id, reply).await;
    Ok(answer)
}

/// `thread/inject_items`
pub(crate) async fn inject(cx: &Context, params: ThreadInjectItemsParams) -> Handled<call::ThreadInjectItems> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    if params.items.is_empty() {
        return Err(RpcError::invalid_request("items must not be empty"));
    }
    if params.items.len() > MAX_INJECTED {
        return Err(RpcError::invalid_request(format!("items must be at most {MAX_INJECTED}")));
    }
    let items = params.items.into_iter().enumerate().map(|(at, item)| response_item(at, item));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let (reply, answer) = cx.answer.reply(|()| ThreadInjectItemsResponse {});
    cx.app.threads().inject(id, items, reply).await;
    Ok(answer)
}

fn response_item(at: usize, item: JsonValue) -> Result<ResponseItem, RpcError> {
    serde_json::from_value(item)
        .map_err(|error| RpcError::invalid_request(format!("items[{at}] is not a valid response item: {error}")))
}

/// The pages that the answer to `thread/resume` has.
#[derive(Default)]
pub(super) struct Pages {
    pub initial: Option<ThreadTurnsListResponse>,
    pub turns: Option<String>,
    pub items: Option<String>,
}

impl Pages {
    /// Reads the pages of a stored thread. A cursor stays valid while the thread grows.
    pub async fn before_resume(cx: &Context, params: &ThreadResumeParams) -> Self {
        let id = match (parse_id(&params.thread_id), &params.path, &params.history) {
            (Ok(id), None, None) => id,
            _ => return Self::default(),
        };
        let initial = match &params.initial_turns_page {
            Some(asked) => {
                let (limit, direction) = (asked.limit, asked.sort_direction.unwrap_or_default());
                turns(cx, id, limit, direction, asked.items_view.unwrap_or_default()).await
            }
            None => None,
        };
        let newest = turns(cx, id, Some(1), SortDirection::Desc, TurnItemsView::NotLoaded).await;
        let request = PageRequest { cursor: None, limit: Some(1), direction: SortDirection::Desc };
        let items = cx.app.threads().items_page(id, &request, None).await.ok();
        Self {
            initial,
            turns: newest.and_then(|page| page.backwards_cursor),
            items: items.and_then(|page| page.backwards_cursor),
        }
    }
}

async fn turns(
    cx: &Context,
    id: ThreadId,
    limit: Option<u32>,
    direction: SortDirection,
    view: TurnItemsView,
) -> Option<ThreadTurnsListResponse> {
    let request = PageRequest { cursor: None, limit, direction };
    cx.app.threads().turns_page(id, &request, view).await.ok()
}

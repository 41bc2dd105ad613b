//! `thread/revert` and `thread/inject_items`

use loomd_agent::{Reverted, parse_id};
use loomd_protocol::{
    JsonValue, ResponseItem, RpcError, ThreadInjectItemsParams, ThreadInjectItemsResponse, ThreadRevertParams,
    ThreadRevertResponse, call,
};

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

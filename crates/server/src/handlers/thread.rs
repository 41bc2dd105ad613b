//! `thread/*`

use loomd_protocol::{RpcError, ThreadLoadedListParams, ThreadLoadedListResponse};

use crate::dispatch::Context;

/// `thread/loaded/list`: threads cannot be started yet, so none is loaded and every page is the last.
pub(crate) async fn loaded_list(_: &Context, _: ThreadLoadedListParams) -> Result<ThreadLoadedListResponse, RpcError> {
    Ok(ThreadLoadedListResponse { data: Vec::new(), next_cursor: None })
}

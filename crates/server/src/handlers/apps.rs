//! `app/list`

use std::sync::Arc;

use loomd_agent::{AccountApps, parse_id};
use loomd_apps::{ListError, Sources, page};
use loomd_protocol::{
    AppListUpdatedNotification, AppsListParams, AppsListResponse, RpcError, ServerNotification, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `app/list`: waits for the directory and the tools of the apps unless both are known.
pub(crate) async fn list(cx: &Context, params: AppsListParams) -> Handled<call::AppList> {
    let thread = params.thread_id.as_deref().map(parse_id).transpose().map_err(wire_error)?;
    let Some(apps) = cx.app.agent.apps(thread).map_err(wire_error)? else {
        return answer(AppsListResponse { data: Vec::new(), next_cursor: None });
    };
    let AccountApps { account, settings, tools } = apps;
    let sources = Sources { account, backend: Arc::clone(&cx.app.apps) as _, tools };
    let updated = |data| cx.app.broadcast(ServerNotification::AppListUpdated(AppListUpdatedNotification { data }));
    let listed = cx.app.apps.lists.list(&sources, &settings, params.force_refetch, updated).await;
    let apps = listed.map_err(|error: ListError| RpcError::internal(error.to_string()))?;
    let (data, next_cursor) = page(apps, params.cursor.as_deref(), params.limit)
        .map_err(|error| RpcError::invalid_request(error.to_string()))?;
    answer(AppsListResponse { data, next_cursor })
}

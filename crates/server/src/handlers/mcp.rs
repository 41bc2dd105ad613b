//! `mcpServerStatus/list` and `config/mcpServer/reload`

use loomd_agent::StatusDetail;
use loomd_protocol::{
    ListMcpServerStatusParams, ListMcpServerStatusResponse, McpServerRefreshResponse, McpServerStatusDetail, NoParams,
    call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `mcpServerStatus/list`: may take as long as the slowest server takes to start.
pub(crate) async fn list_status(cx: &Context, params: ListMcpServerStatusParams) -> Handled<call::McpServerStatusList> {
    let detail = match params.detail {
        Some(McpServerStatusDetail::ToolsAndAuthOnly) => StatusDetail::ToolsAndAuth,
        None | Some(McpServerStatusDetail::Full) => StatusDetail::Full,
    };
    let status = cx.app.agent.mcp_server_status(&params, detail).await;
    let (data, next_cursor) = status.map_err(wire_error)?;
    answer(ListMcpServerStatusResponse { data, next_cursor })
}

/// `config/mcpServer/reload`: servers start after the answer.
pub(crate) async fn reload(cx: &Context, _: NoParams) -> Handled<call::ConfigMcpServerReload> {
    cx.app.agent.reload_mcp_servers().await.map_err(wire_error)?;
    answer(McpServerRefreshResponse {})
}

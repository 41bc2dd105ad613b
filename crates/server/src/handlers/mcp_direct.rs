//! `mcpServer/tool/call` and `mcpServer/resource/read`: the use of a server without a turn.

use loomd_protocol::{McpResourceReadParams, McpServerToolCallParams, call};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `mcpServer/tool/call`
pub(crate) async fn call_tool(cx: &Context, params: McpServerToolCallParams) -> Handled<call::McpServerToolCall> {
    answer(cx.app.threads().call_mcp_tool(params).await.map_err(wire_error)?)
}

/// `mcpServer/resource/read`: without a thread over a connection of its own.
pub(crate) async fn read_resource(cx: &Context, params: McpResourceReadParams) -> Handled<call::McpServerResourceRead> {
    let McpResourceReadParams { server, uri, thread_id, .. } = params;
    answer(cx.app.agent.read_mcp_resource(thread_id.as_deref(), &server, &uri).await.map_err(wire_error)?)
}

//! The item of a call, from its start to its end, and its record.

use std::time::Instant;

use loomd_mcp::CallResult;
use loomd_protocol::{JsonValue, McpToolCallError, McpToolCallResult, McpToolCallStatus, ThreadItem};
use loomd_store::rollout::{Event, McpInvocation, McpResult, McpToolCallEnd};

use crate::turn_cx::TurnCx;

/// A call that has been shown as started.
pub(super) struct CallItem<'a> {
    turn: &'a TurnCx,
    id: String,
    server: String,
    tool: String,
    arguments: Option<JsonValue>,
    read_only_hint: Option<bool>,
    plugin_id: Option<String>,
    begun: Instant,
}

/// What a call is about.
pub(super) struct Called<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub arguments: Option<JsonValue>,
    pub read_only_hint: Option<bool>,
    pub plugin_id: Option<&'a str>,
}

impl<'a> CallItem<'a> {
    pub async fn start(turn: &'a TurnCx, id: &str, called: Called<'_>) -> Self {
        let item = Self {
            turn,
            id: id.into(),
            server: called.server.into(),
            tool: called.tool.into(),
            arguments: called.arguments,
            read_only_hint: called.read_only_hint,
            plugin_id: called.plugin_id.map(str::to_owned),
            begun: Instant::now(),
        };
        turn.started(item.item(McpToolCallStatus::InProgress, None, None, None)).await;
        item
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Records and publishes the result, or the error that stands in for one.
    pub async fn complete(self, result: Result<&CallResult, &str>) {
        let duration = self.begun.elapsed();
        let status = match result {
            Ok(result) if !result.is_error => McpToolCallStatus::Completed,
            _ => McpToolCallStatus::Failed,
        };
        let shown = result.ok().map(|result| McpToolCallResult {
            content: result.content.clone(),
            structured_content: result.structured_content.clone(),
            meta: result.meta.clone().map(Into::into),
        });
        let error = result.err().map(|message| McpToolCallError { message: message.into() });
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let item = self.item(status, shown, error, Some(milliseconds));
        let stored = match result {
            Ok(result) => Ok(McpResult {
                content: result.content.clone(),
                structured_content: result.structured_content.clone(),
                is_error: Some(result.is_error),
                meta: result.meta.clone().map(Into::into),
            }),
            Err(message) => Err(message.to_owned()),
        };
        let end = McpToolCallEnd {
            call_id: self.id,
            invocation: McpInvocation { server: self.server, tool: self.tool, arguments: self.arguments },
            duration,
            result: stored,
            read_only_hint: self.read_only_hint,
            plugin_id: self.plugin_id,
        };
        self.turn.completed(item, Some(Event::McpToolCallEnd(end))).await;
    }

    fn item(
        &self,
        status: McpToolCallStatus,
        result: Option<McpToolCallResult>,
        error: Option<McpToolCallError>,
        duration_ms: Option<i64>,
    ) -> ThreadItem {
        ThreadItem::McpToolCall {
            id: self.id.clone(),
            server: self.server.clone(),
            tool: self.tool.clone(),
            status,
            arguments: self.arguments.clone().unwrap_or_default(),
            result,
            error,
            duration_ms,
            read_only_hint: self.read_only_hint,
            plugin_id: self.plugin_id.clone(),
            app_context: None,
            mcp_app_ui: None,
            mcp_app_resource_uri: None,
        }
    }
}

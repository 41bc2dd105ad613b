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
    begun: Instant,
}

impl<'a> CallItem<'a> {
    pub async fn start(turn: &'a TurnCx, id: &str, server: &str, tool: &str, arguments: Option<JsonValue>) -> Self {
        let item =
            Self { turn, id: id.into(), server: server.into(), tool: tool.into(), arguments, begun: Instant::now() };
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
        });
        let error = result.err().map(|message| McpToolCallError { message: message.into() });
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let item = self.item(status, shown, error, Some(milliseconds));
        let stored = match result {
            Ok(result) => Ok(McpResult {
                content: result.content.clone(),
                structured_content: result.structured_content.clone(),
                is_error: Some(result.is_error),
                ..McpResult::default()
            }),
            Err(message) => Err(message.to_owned()),
        };
        let end = McpToolCallEnd {
            call_id: self.id,
            invocation: McpInvocation { server: self.server, tool: self.tool, arguments: self.arguments },
            duration,
            result: stored,
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
        }
    }
}

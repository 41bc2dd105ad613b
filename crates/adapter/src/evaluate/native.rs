//! The server's own tools as [`ToolInvoked`] events: commands, patches, MCP calls, web searches.

use std::time::{Duration, SystemTime};

use loomd_client::protocol::{CommandExecutionStatus, McpToolCallStatus, PatchApplyStatus, ThreadItem};
use serde_json::{Value, json};

use crate::event::{ToolInvoked, ToolSource};

/// Bytes of output that an event keeps.
const MAX_OUTPUT: usize = 64 * 1024;

/// The event of a completed item; `None` if it is no tool of the server's. Calls of the prompt's tools have their
/// event where they are handled.
pub(super) fn invoked(prompt: &str, thread_id: &str, turn_id: &str, item: &ThreadItem) -> Option<ToolInvoked> {
    let (source, name, arguments, success, output, duration_ms) = match item {
        ThreadItem::CommandExecution { command, cwd, status, exit_code, aggregated_output, duration_ms, .. } => {
            let success = *status == CommandExecutionStatus::Completed && exit_code.is_none_or(|code| code == 0);
            let arguments = json!({ "command": command, "cwd": cwd });
            let output = aggregated_output.clone().unwrap_or_default();
            (ToolSource::Command, "command".to_owned(), arguments, success, output, *duration_ms)
        }
        ThreadItem::FileChange { changes, status, .. } => {
            let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
            let diff = changes.iter().map(|change| change.diff.as_str()).collect::<Vec<_>>().join("\n");
            let success = *status == PatchApplyStatus::Completed;
            (ToolSource::FileChange, "file_change".to_owned(), json!({ "paths": paths }), success, diff, None)
        }
        ThreadItem::McpToolCall { server, tool, status, arguments, result, error, duration_ms, .. } => {
            let success = *status == McpToolCallStatus::Completed;
            let output = match (result, error) {
                (_, Some(error)) => error.message.clone(),
                (Some(result), None) => texts(&result.content),
                (None, None) => String::new(),
            };
            let source = ToolSource::Mcp { server: server.clone() };
            (source, tool.clone(), arguments.clone(), success, output, *duration_ms)
        }
        ThreadItem::WebSearch { query, action, .. } => {
            let action = serde_json::to_value(action).unwrap_or_default();
            let arguments = json!({ "query": query, "action": action });
            (ToolSource::WebSearch, "web_search".to_owned(), arguments, true, String::new(), None)
        }
        _ => return None,
    };
    Some(ToolInvoked {
        prompt: prompt.to_owned(),
        thread_id: thread_id.to_owned(),
        turn_id: turn_id.to_owned(),
        call_id: item.id().to_owned(),
        source,
        name,
        arguments,
        success,
        output: bounded(output),
        duration: duration_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis),
        at: SystemTime::now(),
    })
}

/// The texts of an MCP result.
fn texts(content: &[Value]) -> String {
    content.iter().filter_map(|item| item["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, up to the bound of an event.
pub(super) fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_OUTPUT));
    text
}

//! The records of items that end without the tool that started them.

use std::time::Duration;

use loomd_protocol::{PatchChangeKind, ThreadItem};
use loomd_store::rollout::{
    EndStatus, Event, ExecCommandEnd, FileChange, McpInvocation, McpToolCallEnd, PatchApplyEnd,
};

/// The record of a command, a change or a call of an MCP tool that failed; `None` for other items.
pub(crate) fn end_event(item: &ThreadItem, turn_id: &str) -> Option<Event> {
    Some(match item {
        ThreadItem::CommandExecution {
            id,
            command,
            cwd,
            process_id,
            source,
            command_actions,
            aggregated_output,
            exit_code,
            ..
        } => Event::ExecCommandEnd(ExecCommandEnd {
            call_id: id.clone(),
            process_id: process_id.clone(),
            turn_id: turn_id.into(),
            command: shlex::split(command).unwrap_or_else(|| vec![command.clone()]),
            cwd: cwd.clone(),
            parsed_cmd: command_actions.iter().cloned().map(Into::into).collect(),
            source: (*source).into(),
            interaction_input: None,
            stdout: String::new(),
            stderr: String::new(),
            aggregated_output: aggregated_output.clone().unwrap_or_default(),
            exit_code: exit_code.unwrap_or(-1),
            duration: Duration::ZERO,
            formatted_output: String::new(),
            status: EndStatus::Failed,
        }),
        ThreadItem::FileChange { id, changes, .. } => Event::PatchApplyEnd(PatchApplyEnd {
            call_id: id.clone(),
            turn_id: turn_id.into(),
            stdout: String::new(),
            stderr: String::new(),
            success: false,
            changes: changes
                .iter()
                .map(|change| (change.path.clone(), file_change(&change.kind, &change.diff)))
                .collect(),
            status: EndStatus::Failed,
        }),
        ThreadItem::McpToolCall { id, server, tool, arguments, read_only_hint, plugin_id, .. } => {
            let invocation =
                McpInvocation { server: server.clone(), tool: tool.clone(), arguments: Some(arguments.clone()) };
            Event::McpToolCallEnd(McpToolCallEnd {
                call_id: id.clone(),
                invocation,
                duration: Duration::ZERO,
                result: Err("interrupted, outcome unknown".into()),
                read_only_hint: *read_only_hint,
                plugin_id: plugin_id.clone(),
            })
        }
        _ => return None,
    })
}

/// A change of a file, as rollouts spell it.
pub(crate) fn file_change(kind: &PatchChangeKind, diff: &str) -> FileChange {
    match kind {
        PatchChangeKind::Add => FileChange::Add { content: diff.into() },
        PatchChangeKind::Delete => FileChange::Delete { content: diff.into() },
        PatchChangeKind::Update { move_path } => {
            // The rebuilt item gets the line about the move again.
            let moved = move_path.as_ref().map(|path| format!("\n\nMoved to: {path}")).unwrap_or_default();
            let unified_diff = diff.strip_suffix(&moved).unwrap_or(diff).to_owned();
            FileChange::Update { unified_diff, move_path: move_path.clone() }
        }
    }
}

//! Items that nothing will come of any more.

use loomd_protocol::{
    CollabAgentToolCallStatus, CommandExecutionSource, CommandExecutionStatus, DynamicToolCallStatus,
    McpToolCallStatus, PatchApplyStatus, ThreadItem,
};

/// An item that was begun, as it is when its turn is over and nothing ended it. `None` for one that goes on
/// without its turn: a terminal in the background.
pub(crate) fn given_up(mut item: ThreadItem) -> Option<ThreadItem> {
    match &mut item {
        ThreadItem::CommandExecution { source: CommandExecutionSource::UnifiedExecStartup, .. } => return None,
        ThreadItem::CommandExecution { status, exit_code, .. } => {
            *status = CommandExecutionStatus::Failed;
            exit_code.get_or_insert(-1);
        }
        ThreadItem::FileChange { status, .. } => *status = PatchApplyStatus::Failed,
        ThreadItem::McpToolCall { status, .. } => *status = McpToolCallStatus::Failed,
        ThreadItem::DynamicToolCall { status, .. } => *status = DynamicToolCallStatus::Failed,
        ThreadItem::CollabAgentToolCall { status, .. } => *status = CollabAgentToolCallStatus::Failed,
        _ => {}
    }
    Some(item)
}

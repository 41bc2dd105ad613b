//! Items that were started and will not complete by themselves.

use loomd_protocol::{
    CollabAgentToolCallStatus, CommandExecutionStatus, DynamicToolCallStatus, McpToolCallStatus, PatchApplyStatus,
    ThreadItem,
};

/// The completed form of an item that was open when its turn ended.
pub fn given_up(mut item: ThreadItem) -> ThreadItem {
    match &mut item {
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
    item
}

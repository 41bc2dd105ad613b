//! Items that are still streaming: the deltas that were published are added to the item, so that a client that
//! joins in the middle gets what was published before, and the later deltas continue it.

use loomd_protocol::{ServerNotification, ThreadItem};

/// Output of one running command that is kept; of more, the end.
const MAX_OUTPUT: usize = 1024 * 1024;
/// What is dropped at a time, so that a chatty command does not move a megabyte with every line.
const DROPPED_AT_ONCE: usize = 64 * 1024;
/// Parts of one reasoning item. More are published but not kept.
const MAX_PARTS: usize = 1024;

/// The turn and the item that a delta belongs to; `None` for anything else.
pub(crate) fn delta_of(notification: &ServerNotification) -> Option<(&str, &str)> {
    use ServerNotification::*;
    Some(match notification {
        AgentMessageDelta(delta) => (&delta.turn_id, &delta.item_id),
        PlanDelta(delta) => (&delta.turn_id, &delta.item_id),
        ReasoningSummaryPartAdded(part) => (&part.turn_id, &part.item_id),
        ReasoningSummaryTextDelta(delta) => (&delta.turn_id, &delta.item_id),
        ReasoningTextDelta(delta) => (&delta.turn_id, &delta.item_id),
        CommandExecutionOutputDelta(delta) => (&delta.turn_id, &delta.item_id),
        _ => return None,
    })
}

/// Adds a delta to its item.
pub(crate) fn add_delta(item: &mut ThreadItem, notification: &ServerNotification) {
    use ServerNotification::*;
    match (item, notification) {
        (ThreadItem::AgentMessage { text, .. }, AgentMessageDelta(delta)) => text.push_str(&delta.delta),
        (ThreadItem::Plan { text, .. }, PlanDelta(delta)) => text.push_str(&delta.delta),
        (ThreadItem::Reasoning { summary, .. }, ReasoningSummaryPartAdded(added)) => {
            part(summary, added.summary_index);
        }
        (ThreadItem::Reasoning { summary, .. }, ReasoningSummaryTextDelta(delta)) => {
            if let Some(text) = part(summary, delta.summary_index) {
                text.push_str(&delta.delta);
            }
        }
        (ThreadItem::Reasoning { content, .. }, ReasoningTextDelta(delta)) => {
            if let Some(text) = part(content, delta.content_index) {
                text.push_str(&delta.delta);
            }
        }
        (ThreadItem::CommandExecution { aggregated_output, .. }, CommandExecutionOutputDelta(delta)) => {
            let output = aggregated_output.get_or_insert_default();
            output.push_str(&delta.delta);
            if output.len() > MAX_OUTPUT + DROPPED_AT_ONCE {
                let from = output.ceil_char_boundary(output.len() - MAX_OUTPUT);
                output.drain(..from);
            }
        }
        _ => {}
    }
}

fn part(parts: &mut Vec<String>, index: i64) -> Option<&mut String> {
    let index = usize::try_from(index).ok().filter(|index| *index < MAX_PARTS)?;
    if parts.len() <= index {
        parts.resize(index + 1, String::new());
    }
    parts.get_mut(index)
}

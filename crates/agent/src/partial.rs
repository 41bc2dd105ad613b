//! Items that are still streaming: the deltas that were published are added to the item, so that a client that
//! joins in the middle gets what was published before, and the later deltas continue it.

use loomd_protocol::{ServerNotification, ThreadItem};

/// Output of one running command that is kept; of more, the end.
const MAX_OUTPUT: usize = 1024 * 1024;
/// The bytes that are dropped at a time, so that not every line of output moves a megabyte.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loomd_protocol::{
        AgentMessageDeltaNotification, ItemCompletedNotification, ItemStartedNotification, JsonValue,
        PlanDeltaNotification, ReasoningSummaryPartAddedNotification, ReasoningSummaryTextDeltaNotification,
        ReasoningTextDeltaNotification,
    };
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::event_log::testing::{Received, log};
    use crate::event_sink::Subscriber;

    /// Applies a delta as a client does, by its method.
    fn client_adds(item: &mut JsonValue, event: &JsonValue) {
        let params = &event["params"];
        if params["itemId"] != item["id"] {
            return;
        }
        let push = |text: &mut JsonValue| {
            *text = json!(format!("{}{}", text.as_str().unwrap_or(""), params["delta"].as_str().unwrap()))
        };
        let part = |list: &mut JsonValue, index: &JsonValue| {
            let (list, index) = (list.as_array_mut().unwrap(), index.as_u64().unwrap() as usize);
            list.resize((index + 1).max(list.len()), json!(""));
            index
        };
        match event["method"].as_str().unwrap() {
            "item/agentMessage/delta" | "item/plan/delta" => push(&mut item["text"]),
            "item/commandExecution/outputDelta" => push(&mut item["aggregatedOutput"]),
            "item/reasoning/summaryPartAdded" => _ = part(&mut item["summary"], &params["summaryIndex"]),
            "item/reasoning/summaryTextDelta" => {
                let index = part(&mut item["summary"], &params["summaryIndex"]);
                push(&mut item["summary"][index]);
            }
            "item/reasoning/textDelta" => {
                let index = part(&mut item["content"], &params["contentIndex"]);
                push(&mut item["content"][index]);
            }
            _ => {}
        }
    }

    fn items() -> Vec<ThreadItem> {
        let command = json!({
            "type": "commandExecution", "id": "command", "command": "x", "cwd": "/", "processId": null, "status": "inProgress",
            "commandActions": [], "aggregatedOutput": null, "exitCode": null, "durationMs": null,
        });
        vec![
            ThreadItem::AgentMessage { id: "message".into(), text: String::new(), phase: None, memory_citation: None },
            ThreadItem::Plan { id: "plan".into(), text: String::new() },
            ThreadItem::Reasoning { id: "reasoning".into(), summary: Vec::new(), content: Vec::new() },
            serde_json::from_value(command).unwrap(),
        ]
    }

    fn delta() -> impl Strategy<Value = ServerNotification> {
        let ids = |item: &str| ("t".to_owned(), "turn".to_owned(), item.to_owned());
        (0..6, "[a-zé\n]{0,4}", 0i64..3).prop_map(move |(kind, delta, index)| match kind {
            0 => {
                let (thread_id, turn_id, item_id) = ids("message");
                ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
                    thread_id,
                    turn_id,
                    item_id,
                    delta,
                })
            }
            1 => {
                let (thread_id, turn_id, item_id) = ids("plan");
                ServerNotification::PlanDelta(PlanDeltaNotification { thread_id, turn_id, item_id, delta })
            }
            2 => {
                let (thread_id, turn_id, item_id) = ids("reasoning");
                let added = ReasoningSummaryPartAddedNotification { thread_id, turn_id, item_id, summary_index: index };
                ServerNotification::ReasoningSummaryPartAdded(added)
            }
            3 => {
                let (thread_id, turn_id, item_id) = ids("reasoning");
                let delta =
                    ReasoningSummaryTextDeltaNotification { thread_id, turn_id, item_id, delta, summary_index: index };
                ServerNotification::ReasoningSummaryTextDelta(delta)
            }
            4 => {
                let (thread_id, turn_id, item_id) = ids("reasoning");
                let delta = ReasoningTextDeltaNotification { thread_id, turn_id, item_id, delta, content_index: index };
                ServerNotification::ReasoningTextDelta(delta)
            }
            _ => {
                let (thread_id, turn_id, item_id) = ids("command");
                ServerNotification::CommandExecutionOutputDelta(
                    loomd_protocol::CommandExecutionOutputDeltaNotification { thread_id, turn_id, item_id, delta },
                )
            }
        })
    }

    proptest! {
        #[test]
        fn a_snapshot_and_the_later_deltas_equal_all_deltas(
            deltas in prop::collection::vec(delta(), 0..40),
            joins in 0usize..41,
        ) {
            let received = Arc::new(Received::default());
            let events = log(&received, &[1]);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut joined = Vec::new();
            runtime.block_on(async {
                for item in items() {
                    let (thread_id, turn_id) = ("t".into(), "turn".into());
                    let started = ItemStartedNotification { item, thread_id, turn_id, started_at_ms: 0 };
                    events.publish(ServerNotification::ItemStarted(started)).await;
                }
                for at in 0..=deltas.len() {
                    if at == joins.min(deltas.len()) {
                        joined = events.open_items("turn").iter().map(|item| json!(item)).collect();
                        events.join(Subscriber(2), None, None, || ()).await.0.hold().await.subscribe().await;
                    }
                    if let Some(delta) = deltas.get(at) {
                        events.publish(delta.clone()).await;
                    }
                }
            });
            let mut first: Vec<JsonValue> = items().iter().map(|item| json!(item)).collect();
            for (subscriber, event) in received.notifications() {
                let view = if subscriber == 1 { &mut first } else { &mut joined };
                view.iter_mut().for_each(|item| client_adds(item, &event));
            }
            prop_assert_eq!(&joined, &first);
            // The open items, from which abandoned items are completed, equal them, too.
            let open: Vec<JsonValue> = events.open_items("turn").iter().map(|item| json!(item)).collect();
            prop_assert_eq!(open, first);
        }
    }

    #[tokio::test]
    async fn the_output_of_a_command_that_never_stops_is_bounded() {
        let events = log(&Arc::default(), &[]);
        let (thread_id, turn_id) = (String::from("t"), String::from("turn"));
        let item = items().remove(3);
        let started = ItemStartedNotification { item: item.clone(), thread_id, turn_id, started_at_ms: 0 };
        events.publish(ServerNotification::ItemStarted(started)).await;
        for number in 0..40 {
            let (thread_id, turn_id, item_id) = ("t".into(), "turn".into(), "command".into());
            let delta = format!("{}{number}", "é".repeat(50_000));
            let delta = loomd_protocol::CommandExecutionOutputDeltaNotification { thread_id, turn_id, item_id, delta };
            events.publish(ServerNotification::CommandExecutionOutputDelta(delta)).await;
        }
        let ThreadItem::CommandExecution { aggregated_output: Some(output), .. } = &events.open_items("turn")[0] else {
            panic!("no output")
        };
        assert!(output.len() <= MAX_OUTPUT + DROPPED_AT_ONCE && output.ends_with("39"));
        let (thread_id, turn_id) = ("t".into(), "turn".into());
        let done = ItemCompletedNotification { item, thread_id, turn_id, completed_at_ms: 0, started_at_ms: None };
        events.publish(ServerNotification::ItemCompleted(done)).await;
        assert!(!events.has_open_items());
    }
}

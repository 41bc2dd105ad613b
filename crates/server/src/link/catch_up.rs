//! What a client is sent when the thread that it follows has moved to another node: the events that it has missed, as
//! far as the history tells. Every item that has begun completes, and every turn ends once.

use loomd_protocol::{
    ItemCompletedNotification, ItemStartedNotification, ServerNotification, ThreadItem, Turn,
    TurnCompletedNotification, TurnItemsView, TurnStartedNotification, TurnStatus,
};

use super::followed::{OpenTurn, Seen};

/// The events between what a client has seen and a snapshot, whose `open_items` have not completed. The events after the
/// snapshot follow them.
pub(super) fn missed(thread_id: &str, seen: &Seen, turns: &[Turn], open_items: &[String]) -> Vec<ServerNotification> {
    let at = |id: &str| turns.iter().position(|turn| turn.id == id);
    let first = match (&seen.open, &seen.ended) {
        (Some(open), _) => at(&open.id),
        (None, Some(ended)) => at(ended).map(|at| at + 1),
        (None, None) => None,
    };
    // Without a place that both know, only the turn that runs is of use.
    let first = first.unwrap_or_else(|| match turns.last() {
        Some(turn) if turn.status == TurnStatus::InProgress && !seen.is_partial => turns.len() - 1,
        _ => turns.len(),
    });
    let mut events = Vec::new();
    let known = seen.open.as_ref().filter(|open| turns.get(first).is_some_and(|turn| turn.id == open.id));
    if let (None, Some(open)) = (known, &seen.open) {
        // The history has nothing of the turn: it ended before its first record.
        end_lost(thread_id, open, &mut events);
    }
    for (number, turn) in turns.iter().skip(first).enumerate() {
        let open = known.filter(|_| number == 0);
        show(thread_id, turn, open, open_items, &mut events);
    }
    events
}

fn show(
    thread_id: &str,
    turn: &Turn,
    open: Option<&OpenTurn>,
    open_items: &[String],
    events: &mut Vec<ServerNotification>,
) {
    let runs = turn.status == TurnStatus::InProgress;
    if open.is_none() {
        let begun = Turn { items: Vec::new(), status: TurnStatus::InProgress, error: None, ..turn.clone() };
        let started = TurnStartedNotification { thread_id: thread_id.into(), turn: begun };
        events.push(ServerNotification::TurnStarted(started));
    }
    let is_started = |id: &str| open.is_some_and(|open| open.started.iter().any(|item| item.id() == id));
    let is_completed = |id: &str| open.is_some_and(|open| open.completed.contains(id));
    // Where the client began to watch the turn.
    let first = match open {
        Some(open) if open.is_partial => {
            let is_known = |item: &ThreadItem| is_started(item.id()) || is_completed(item.id());
            turn.items.iter().position(is_known).unwrap_or(turn.items.len())
        }
        _ => 0,
    };
    for item in turn.items.iter().skip(first).filter(|item| !is_completed(item.id())) {
        if !is_started(item.id()) {
            events.push(started(thread_id, &turn.id, item.clone()));
        }
        if !(runs && open_items.iter().any(|id| id == item.id())) {
            events.push(completed(thread_id, &turn.id, item.clone()));
        }
    }
    for item in open.iter().flat_map(|open| &open.started) {
        let is_there = |shown: &ThreadItem| shown.id() == item.id();
        // One that goes on is shown again by its turn.
        let goes_on = runs && open_items.iter().any(|id| id == item.id());
        if !goes_on && !turn.items.iter().any(is_there) {
            events.push(completed(thread_id, &turn.id, loomd_agent::given_up(item.clone())));
        }
    }
    if !runs {
        let turn = Turn { items: Vec::new(), items_view: Some(TurnItemsView::NotLoaded), ..turn.clone() };
        let completed = TurnCompletedNotification { thread_id: thread_id.into(), turn, usage: None };
        events.push(ServerNotification::TurnCompleted(completed));
    }
}

/// Ends a turn of which nothing was stored.
fn end_lost(thread_id: &str, open: &OpenTurn, events: &mut Vec<ServerNotification>) {
    for item in &open.started {
        events.push(completed(thread_id, &open.id, loomd_agent::given_up(item.clone())));
    }
    let turn = Turn {
        id: open.id.clone(),
        status: TurnStatus::Interrupted,
        items_view: Some(TurnItemsView::NotLoaded),
        ..Turn::default()
    };
    let completed = TurnCompletedNotification { thread_id: thread_id.into(), turn, usage: None };
    events.push(ServerNotification::TurnCompleted(completed));
}

fn started(thread_id: &str, turn_id: &str, item: ThreadItem) -> ServerNotification {
    let (thread_id, turn_id) = (thread_id.to_owned(), turn_id.to_owned());
    ServerNotification::ItemStarted(ItemStartedNotification { item, thread_id, turn_id, started_at_ms: now_ms() })
}

fn completed(thread_id: &str, turn_id: &str, item: ThreadItem) -> ServerNotification {
    let (thread_id, turn_id) = (thread_id.to_owned(), turn_id.to_owned());
    ServerNotification::ItemCompleted(ItemCompletedNotification {
        item,
        thread_id,
        turn_id,
        started_at_ms: None,
        completed_at_ms: now_ms(),
    })
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn message(id: &str) -> ThreadItem {
        serde_json::from_value(json!({ "type": "agentMessage", "id": id, "text": id })).unwrap()
    }

    fn turn(id: &str, items: &[&str], status: TurnStatus) -> Turn {
        Turn { id: id.into(), items: items.iter().map(|id| message(id)).collect(), status, ..Turn::default() }
    }

    fn shown(events: &[ServerNotification]) -> Vec<String> {
        let name = |event: &ServerNotification| match event {
            ServerNotification::TurnStarted(event) => format!("+{}", event.turn.id),
            ServerNotification::TurnCompleted(event) => format!("-{}", event.turn.id),
            ServerNotification::ItemStarted(event) => format!("+{}", event.item.id()),
            ServerNotification::ItemCompleted(event) => format!("-{}", event.item.id()),
            other => panic!("unexpected {other:?}"),
        };
        events.iter().map(name).collect()
    }

    fn open(id: &str, started: &[&str], completed: &[&str]) -> Seen {
        let open = OpenTurn {
            id: id.into(),
            started: started.iter().map(|id| message(id)).collect(),
            completed: completed.iter().map(|id| (*id).to_owned()).collect::<HashSet<_>>(),
            is_partial: false,
        };
        Seen { open: Some(open), ..Seen::default() }
    }

    #[test]
    fn a_client_gets_each_item_and_turn_once() {
        let turns = [
            turn("t1", &["a"], TurnStatus::Completed),
            turn("t2", &["b", "c", "d"], TurnStatus::Completed),
            turn("t3", &["e"], TurnStatus::InProgress),
        ];
        let seen = open("t2", &["c", "lost"], &["b"]);
        assert_eq!(
            shown(&missed("x", &seen, &turns, &[])),
            ["-c", "+d", "-d", "-lost", "-t2", "+t3", "+e", "-e"],
            "what it has seen is not sent again"
        );
        let seen = Seen { ended: Some("t2".into()), ..Seen::default() };
        assert_eq!(shown(&missed("x", &seen, &turns, &[])), ["+t3", "+e", "-e"]);
        let seen = Seen { ended: Some("t3".into()), ..Seen::default() };
        assert_eq!(shown(&missed("x", &seen, &turns, &[])), Vec::<String>::new());
    }

    #[test]
    fn a_call_that_the_turn_will_make_again_does_not_end_before() {
        let turns = [turn("t1", &["a"], TurnStatus::InProgress)];
        let seen = open("t1", &["call", "text"], &["a"]);
        assert_eq!(shown(&missed("x", &seen, &turns, &["call".into()])), ["-text"]);
    }

    #[test]
    fn a_turn_of_which_nothing_was_stored_ends() {
        assert_eq!(shown(&missed("x", &open("t9", &["a"], &[]), &[], &[])), ["-a", "-t9"]);
    }

    #[test]
    fn a_client_that_has_seen_nothing_is_told_of_the_running_turn_only() {
        let turns = [turn("t1", &["a"], TurnStatus::Completed), turn("t2", &["b"], TurnStatus::InProgress)];
        assert_eq!(shown(&missed("x", &Seen::default(), &turns, &["b".into()])), ["+t2", "+b"]);
        assert_eq!(shown(&missed("x", &Seen::default(), &turns[..1], &[])), Vec::<String>::new());
    }

    #[test]
    fn a_client_that_did_not_want_turns_is_not_sent_what_was_before_its_first_event() {
        let raw = |value: serde_json::Value| serde_json::value::to_raw_value(&value).unwrap();
        let turns = [turn("t1", &["a"], TurnStatus::Completed), turn("t2", &["b", "c", "d"], TurnStatus::InProgress)];
        let mut seen = Seen { is_partial: true, ..Seen::default() };
        assert_eq!(shown(&missed("x", &seen, &turns, &[])), Vec::<String>::new());
        let item = raw(json!({ "threadId": "x", "turnId": "t2", "item": message("c") }));
        seen.note("item/completed", Some(&item));
        assert_eq!(shown(&missed("x", &seen, &turns, &[])), ["+d", "-d"]);
    }

    #[test]
    fn what_was_seen_is_read_from_a_snapshot_and_from_events() {
        let raw = |value: serde_json::Value| serde_json::value::to_raw_value(&value).unwrap();
        let mut seen = Seen::of_snapshot(&[turn("t1", &["a"], TurnStatus::InProgress)], &[]);
        let item = |id: &str| raw(json!({ "threadId": "x", "turnId": "t1", "item": message(id) }));
        seen.note("item/started", Some(&item("b")));
        seen.note("item/completed", Some(&item("b")));
        seen.note("item/started", Some(&item("c")));
        assert_eq!(seen, open("t1", &["c"], &["a", "b"]));
        seen.note("turn/completed", Some(&raw(json!({ "threadId": "x", "turn": { "id": "t1" } }))));
        assert_eq!(seen, Seen { ended: Some("t1".into()), ..Seen::default() });
    }
}

//! What must hold of a history and of what is stored after it.

use std::collections::{BTreeMap, HashMap};

use crate::history::{ConnectionId, Entry, Label, Seen, What};
use crate::stored::StoredThread;

/// Something that must not be: the thread, if it is one's, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub thread: Option<String>,
    pub what: String,
}

/// Checks a history against the stored threads, and the commands that were run.
pub fn check(entries: &[Entry], stored: &[StoredThread], runs: &[String]) -> Vec<Violation> {
    let mut checks = Checks { stored: stored.iter().map(|thread| (&*thread.id, thread)).collect(), found: Vec::new() };
    for thread in stored {
        checks.thread(thread);
    }
    checks.starts(entries);
    checks.completions(entries, runs);
    checks.orders(entries);
    checks.same_events(entries);
    checks.commands(runs);
    checks.found
}

struct Checks<'a> {
    stored: HashMap<&'a str, &'a StoredThread>,
    found: Vec<Violation>,
}

impl Checks<'_> {
    fn violation(&mut self, thread: &str, what: String) {
        let violation = Violation { thread: Some(thread.to_owned()), what };
        if !self.found.contains(&violation) {
            self.found.push(violation);
        }
    }

    /// Every turn has ended, and nothing is stored twice.
    fn thread(&mut self, thread: &StoredThread) {
        for turn in thread.turns.iter().filter(|turn| turn.status == "inProgress") {
            self.violation(&thread.id, format!("turn {} has not ended", turn.id));
        }
        let mut times: BTreeMap<&Label, usize> = BTreeMap::new();
        for item in thread.items().into_iter().filter(|item| item.is_lasting()) {
            *times.entry(item).or_default() += 1;
        }
        for (item, times) in times.into_iter().filter(|(_, times)| *times > 1) {
            self.violation(&thread.id, format!("{} {:?} is stored {times} times", item.kind, item.name));
        }
    }

    /// A turn that was acknowledged is stored with its message, under the id that was answered each time.
    fn starts(&mut self, entries: &[Entry]) {
        let mut turns: HashMap<&str, &str> = HashMap::new();
        for entry in entries {
            match &entry.what {
                What::Started { thread, key, text, turn } => {
                    let first = *turns.entry(key).or_insert(turn);
                    if first != turn {
                        self.violation(thread, format!("{key} was answered with turn {first}, and then with {turn}"));
                    }
                    let message = Label { kind: "userMessage".into(), name: text.clone() };
                    let stored = self.stored.get(&**thread).and_then(|stored| {
                        stored
                            .turns
                            .iter()
                            .find(|stored| stored.items.contains(&message))
                            .map(|stored| stored.id.clone())
                    });
                    match stored {
                        None => self.violation(thread, format!("the acknowledged message {text:?} is not stored")),
                        Some(stored) if stored != *turn => {
                            self.violation(thread, format!("{key} was answered with turn {turn}, and is in {stored}"));
                        }
                        Some(_) => {}
                    }
                }
                What::Failed { thread: Some(thread), method, reason } if reason.contains("idempotencyConflict") => {
                    self.violation(thread, format!("{method}: {reason}"));
                }
                _ => {}
            }
        }
    }

    /// Items and turns that a client saw complete are stored so.
    fn completions(&mut self, entries: &[Entry], runs: &[String]) {
        for seen in events(entries) {
            let turn = seen.turn.as_deref().unwrap_or_default();
            let stored = self.stored.get(&*seen.thread).copied();
            let stored = stored.and_then(|thread| thread.turns.iter().find(|stored| stored.id == turn));
            match (&*seen.method, &seen.item) {
                ("turn/completed", _) => {
                    let status = seen.status.as_deref().unwrap_or_default();
                    let found = stored.map_or("missing", |stored| &stored.status);
                    if found != status {
                        self.violation(
                            &seen.thread,
                            format!("turn {turn} ended as {status}, and is stored as {found}"),
                        );
                    }
                }
                ("item/completed", Some(item)) if item.is_lasting() => {
                    if stored.is_none_or(|stored| !stored.items.contains(item)) {
                        let what = format!("{} {:?} completed in turn {turn}, and is not stored", item.kind, item.name);
                        self.violation(&seen.thread, what);
                    }
                    let has_run = item.kind == "commandExecution" && seen.status.as_deref() == Some("completed");
                    if has_run && !runs.contains(&item.name) {
                        self.violation(&seen.thread, format!("command {} completed, and did not run", item.name));
                    }
                }
                _ => {}
            }
        }
    }

    /// Each connection got the events of a thread in the order of their ids, and the items in the order in which they are
    /// stored.
    fn orders(&mut self, entries: &[Entry]) {
        let mut last: HashMap<(ConnectionId, &str), u128> = HashMap::new();
        let mut place: HashMap<(ConnectionId, &str), usize> = HashMap::new();
        let places: HashMap<(&str, &Label), usize> = self.places();
        let mut found = Vec::new();
        for entry in entries {
            match &entry.what {
                What::Shown { connection, thread, after, items } => {
                    last.insert((*connection, thread), *after);
                    place.remove(&(*connection, thread));
                    let shown: Vec<_> = items
                        .iter()
                        .flatten()
                        .filter_map(|item| Some((places.get(&(&**thread, item))?, &item.name)))
                        .collect();
                    let swapped = shown.windows(2).find(|pair| pair[0].0 > pair[1].0);
                    if let Some([(_, one), (_, other)]) = swapped {
                        found.push((thread, format!("[{connection}] was shown {one:?} before {other:?}")));
                    }
                }
                What::Event(seen) => {
                    let key = (seen.connection, &*seen.thread);
                    let before = last.get(&key).copied().unwrap_or_default();
                    if let Some(event) = seen.event.filter(|event| *event > before) {
                        last.insert(key, event);
                    } else if let (Some(event), false) = (seen.event, seen.is_request) {
                        let Seen { connection, method, .. } = seen;
                        found.push((&seen.thread, format!("[{connection}] got {method} {event} after {before}")));
                    }
                    let stored = seen.item.as_ref().filter(|_| seen.method == "item/completed");
                    if let Some(stored) = stored.and_then(|item| places.get(&(&*seen.thread, item))) {
                        let before = place.insert(key, *stored);
                        if before.is_some_and(|before| before >= *stored) {
                            let what = format!("[{}] got {:?} after an item behind it", seen.connection, seen.item);
                            found.push((&seen.thread, what));
                        }
                    }
                }
                _ => {}
            }
        }
        for (thread, what) in found {
            self.violation(thread, what);
        }
    }

    /// Where items are stored in their threads.
    fn places(&self) -> HashMap<(&str, &Label), usize> {
        let threads = self.stored.values();
        let items = threads.flat_map(|thread| thread.items().into_iter().enumerate().map(|item| (&*thread.id, item)));
        items
            .filter(|(_, (_, item))| item.is_lasting())
            .map(|(thread, (place, item))| ((thread, item), place))
            .collect()
    }

    /// An event id is the same event for every client.
    fn same_events(&mut self, entries: &[Entry]) {
        let mut known: HashMap<(&str, u128), &Seen> = HashMap::new();
        for seen in events(entries) {
            let Some(event) = seen.event else { continue };
            let first = *known.entry((&seen.thread, event)).or_insert(seen);
            let what = |seen: &Seen| (seen.method.clone(), seen.turn.clone(), seen.item.clone(), seen.status.clone());
            if what(first) != what(seen) {
                let (one, other) = (what(first), what(seen));
                self.violation(&seen.thread, format!("event {event} is {one:?}, and {other:?}"));
            }
        }
    }

    fn commands(&mut self, runs: &[String]) {
        let mut sorted: Vec<&String> = runs.iter().collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.found.push(Violation { thread: None, what: format!("command {} ran twice", pair[0]) });
        }
    }
}

fn events(entries: &[Entry]) -> impl Iterator<Item = &Seen> {
    entries.iter().filter_map(|entry| match &entry.what {
        What::Event(seen) => Some(seen),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stored::StoredTurn;

    fn label(kind: &str, name: &str) -> Label {
        Label { kind: kind.into(), name: name.into() }
    }

    fn event(connection: ConnectionId, event: u128, method: &str, item: Option<Label>, status: Option<&str>) -> What {
        What::Event(Seen {
            connection,
            thread: "t".into(),
            event: Some(event),
            method: method.into(),
            is_request: false,
            turn: Some("1".into()),
            item,
            status: status.map(str::to_owned),
        })
    }

    fn items() -> [Label; 3] {
        [
            label("userMessage", "plan k c."),
            label("commandExecution", "call_k_0"),
            label("agentMessage", "k/end0 is all."),
        ]
    }

    /// What two clients see of a turn that ends well.
    fn history() -> Vec<What> {
        let [message, command, text] = items();
        let mut whats =
            vec![What::Started { thread: "t".into(), key: "k".into(), text: message.name.clone(), turn: "1".into() }];
        for connection in [0, 1] {
            whats.push(What::Shown { connection, thread: "t".into(), after: 10, items: None });
            whats.push(event(connection, 11, "item/completed", Some(message.clone()), None));
            whats.push(event(connection, 12, "item/completed", Some(command.clone()), Some("completed")));
            whats.push(event(connection, 13, "item/completed", Some(text.clone()), None));
            whats.push(event(connection, 14, "turn/completed", None, Some("completed")));
        }
        whats
    }

    fn thread() -> StoredThread {
        let turn = StoredTurn { id: "1".into(), status: "completed".into(), items: items().to_vec() };
        StoredThread { id: "t".into(), turns: vec![turn] }
    }

    fn found(history: Vec<What>, stored: StoredThread, runs: &[&str]) -> Vec<String> {
        let entries: Vec<Entry> = history.into_iter().map(|what| Entry { at: Duration::ZERO, what }).collect();
        let runs: Vec<String> = runs.iter().map(|run| (*run).to_owned()).collect();
        check(&entries, &[stored], &runs).into_iter().map(|violation| violation.what).collect()
    }

    const RUNS: &[&str] = &["call_k_0"];

    #[test]
    fn a_history_that_is_stored_as_it_was_seen_has_no_violation() {
        assert_eq!(found(history(), thread(), RUNS), Vec::<String>::new());
    }

    #[test]
    fn what_was_acknowledged_and_is_missing_doubled_or_changed_is_a_violation() {
        for place in 0..3 {
            let mut stored = thread();
            stored.turns[0].items.remove(place);
            assert!(!found(history(), stored, RUNS).is_empty(), "item {place} is missing");
            let mut stored = thread();
            let twice = stored.turns[0].items[place].clone();
            stored.turns[0].items.push(twice);
            assert!(!found(history(), stored, RUNS).is_empty(), "item {place} is there twice");
        }
        let mut stored = thread();
        stored.turns[0].status = "interrupted".into();
        assert_eq!(found(history(), stored, RUNS).len(), 1);
        let mut stored = thread();
        stored.turns[0].status = "inProgress".into();
        assert_eq!(found(history(), stored, RUNS).len(), 2);
    }

    #[test]
    fn two_orders_and_two_meanings_of_an_event_are_violations() {
        let mut swapped = history();
        swapped.swap(7, 8);
        assert!(!found(swapped, thread(), RUNS).is_empty());
        let mut repeated = history();
        repeated.push(event(1, 14, "turn/completed", None, Some("completed")));
        assert_eq!(found(repeated, thread(), RUNS).len(), 1);
        let mut other = history();
        other.pop();
        other.push(event(1, 14, "turn/started", None, None));
        assert_eq!(found(other, thread(), RUNS).len(), 1);
        // The ids are right, and the order is not that of the store.
        let mut stored = thread();
        stored.turns[0].items.swap(1, 2);
        assert!(!found(history(), stored, RUNS).is_empty());
    }

    #[test]
    fn commands_that_ran_twice_or_not_and_keys_with_two_turns_are_violations() {
        assert_eq!(found(history(), thread(), &["call_k_0", "call_k_0"]).len(), 1);
        assert_eq!(found(history(), thread(), &[]).len(), 1);
        let mut again = history();
        let text = items()[0].name.clone();
        again.push(What::Started { thread: "t".into(), key: "k".into(), text, turn: "2".into() });
        assert!(!found(again, thread(), RUNS).is_empty());
    }

    #[test]
    fn a_replay_begins_where_the_client_was_and_the_beginning_of_a_message_need_not_be_stored() {
        let mut replayed = history();
        replayed.push(What::Shown { connection: 1, thread: "t".into(), after: 12, items: Some(items()[..2].to_vec()) });
        replayed.push(event(1, 13, "item/completed", Some(items()[2].clone()), None));
        replayed.push(event(1, 15, "item/completed", Some(label("agentMessage", "k/end0 is")), None));
        assert_eq!(found(replayed, thread(), RUNS), Vec::<String>::new());
    }
}

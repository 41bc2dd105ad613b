//! [`Positions`]: the last event of each thread that was received, so that a lost connection is made again without
//! missing an event or seeing one twice.

use std::collections::{HashMap, HashSet};

/// The most threads whose last events are remembered. A client resumes others without `afterEvent`.
const MAX_THREADS: usize = 16 * 1024;

#[derive(Default)]
pub(crate) struct Positions {
    last: HashMap<String, u128>,
    /// Threads that are being resumed after a reconnect. What the server sends about them before its answer is
    /// contained in what it sends after it.
    resuming: HashSet<String>,
}

impl Positions {
    /// Whether an event is new. A new one becomes the last of its thread.
    pub(crate) fn is_new(&mut self, thread_id: &str, event_id: u128) -> bool {
        if self.resuming.contains(thread_id) {
            return false;
        }
        match self.last.get_mut(thread_id) {
            Some(last) => {
                let is_new = *last < event_id;
                *last = event_id.max(*last);
                is_new
            }
            None => {
                if self.last.len() < MAX_THREADS {
                    self.last.insert(thread_id.to_owned(), event_id);
                }
                true
            }
        }
    }

    /// The last event of a thread.
    pub(crate) fn last(&self, thread_id: &str) -> Option<u128> {
        self.last.get(thread_id).copied()
    }

    /// Ignores events of these threads until they are resumed.
    pub(crate) fn resuming(&mut self, thread_ids: impl IntoIterator<Item = String>) {
        self.resuming = thread_ids.into_iter().collect();
    }

    /// A thread was resumed. `at` is the event of its snapshot; `None` if the events after the last one follow.
    pub(crate) fn resumed(&mut self, thread_id: &str, at: Option<u128>) {
        self.resuming.remove(thread_id);
        if let Some(at) = at {
            self.last.insert(thread_id.to_owned(), at);
        }
    }

    /// A thread could not be resumed.
    pub(crate) fn not_resumed(&mut self, thread_id: &str) {
        self.resuming.remove(thread_id);
        self.last.remove(thread_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_new_once_and_not_while_its_thread_is_being_resumed() {
        let mut positions = Positions::default();
        assert!(positions.is_new("a", 5));
        assert!(!positions.is_new("a", 5));
        assert!(positions.is_new("b", 5), "ids belong to threads");
        positions.resuming(["a".to_owned()]);
        assert!(!positions.is_new("a", 9));
        assert_eq!(positions.last("a"), Some(5));
        positions.resumed("a", None);
        assert!(positions.is_new("a", 6));
        positions.resuming(["a".to_owned()]);
        positions.resumed("a", Some(1 << 70));
        assert!(!positions.is_new("a", 9));
        assert!(positions.is_new("a", (1 << 70) + 1));
    }
}

//! Where events go: to every reader that wants them. Outlives a connection, so that readers keep their streams
//! when it is made again. Also knows which turns run, and which threads wait for this client's answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loomd_protocol::{ServerNotification, TurnStatus};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::events::{Events, Filter, Queue};

#[derive(Default)]
pub(crate) struct Hub(Mutex<State>);

#[derive(Default)]
struct State {
    next_reader: u64,
    readers: BTreeMap<u64, Arc<Queue>>,
    /// The turn that runs, by thread.
    running: HashMap<String, String>,
    /// Requests of the server that this client works on, by thread.
    asked: HashMap<String, usize>,
    finished: bool,
}

impl Hub {
    pub(crate) fn subscribe(self: &Arc<Self>, filter: Filter) -> Events {
        let queue = Arc::new(Queue::new(filter));
        let mut state = self.lock();
        if state.finished {
            queue.finish(None);
        }
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(id, Arc::clone(&queue));
        drop(state);
        Events::new(Arc::clone(self), id, queue)
    }

    pub(crate) fn unsubscribe(&self, id: u64) {
        self.lock().readers.remove(&id);
    }

    /// Passes on an event that took this many bytes.
    pub(crate) fn publish(&self, event: &Event, bytes: usize) {
        let mut state = self.lock();
        state.follow(event);
        for queue in state.readers.values() {
            queue.push(event, bytes);
        }
    }

    /// There will be no more events; every reader gets the error, if there is one.
    pub(crate) fn finish(&self, error: impl Fn() -> Option<Error>) {
        let mut state = self.lock();
        state.finished = true;
        for queue in state.readers.values() {
            queue.finish(error());
        }
    }

    /// The turn that runs in a thread, as far as this connection was told.
    pub(crate) fn running(&self, thread_id: &str) -> Option<String> {
        self.lock().running.get(thread_id).cloned()
    }

    /// Whether the server waits for an answer of this client to go on with a thread.
    pub(crate) fn is_asked(&self, thread_id: &str) -> bool {
        self.lock().asked.contains_key(thread_id)
    }

    /// Counts a request of the server as long as the result is there.
    pub(crate) fn asked(self: &Arc<Self>, thread_id: Option<String>) -> Option<AskedGuard> {
        let thread_id = thread_id?;
        *self.lock().asked.entry(thread_id.clone()).or_default() += 1;
        Some(AskedGuard { hub: Arc::clone(self), thread_id })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn follow(&mut self, event: &Event) {
        let Some(thread) = &event.thread_id else { return };
        match &event.kind {
            EventKind::Notification(notification) => match &**notification {
                ServerNotification::TurnStarted(started) => {
                    self.running.insert(thread.clone(), started.turn.id.clone());
                }
                ServerNotification::TurnCompleted(_) | ServerNotification::ThreadClosed(_) => {
                    self.running.remove(thread);
                }
                _ => {}
            },
            EventKind::Resumed(resumed) => {
                match resumed.thread.turns.iter().rfind(|turn| turn.status == TurnStatus::InProgress) {
                    Some(turn) => self.running.insert(thread.clone(), turn.id.clone()),
                    None => self.running.remove(thread),
                };
            }
            _ => {}
        }
    }
}

pub(crate) struct AskedGuard {
    hub: Arc<Hub>,
    thread_id: String,
}

impl Drop for AskedGuard {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        if let Some(count) = state.asked.get_mut(&self.thread_id) {
            *count -= 1;
            if *count == 0 {
                state.asked.remove(&self.thread_id);
            }
        }
    }
}

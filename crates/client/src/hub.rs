//! [`Hub`]: publishes events to all subscribers. It outlives connections, so streams go on after a reconnect. Also
//! tracks the running turn and the open server requests of each thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loomd_protocol::{ServerNotification, TurnStatus};
use parking_lot::{Mutex, MutexGuard};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::events::{Events, Filter, Queue};

#[derive(Default)]
pub(crate) struct Hub(Mutex<HubState>);

#[derive(Default)]
struct HubState {
    next_subscriber: u64,
    subscribers: BTreeMap<u64, Arc<Queue>>,
    /// The id of the running turn, by thread id.
    running: HashMap<String, String>,
    /// Number of server requests in progress, by thread id.
    open_requests: HashMap<String, usize>,
    finished: bool,
}

impl Hub {
    pub(crate) fn subscribe(self: &Arc<Self>, filter: Filter) -> Events {
        let queue = Arc::new(Queue::new(filter));
        let mut state = self.lock();
        if state.finished {
            queue.finish(None);
        }
        let id = state.next_subscriber;
        state.next_subscriber += 1;
        state.subscribers.insert(id, Arc::clone(&queue));
        drop(state);
        Events::new(Arc::clone(self), id, queue)
    }

    pub(crate) fn unsubscribe(&self, id: u64) {
        self.lock().subscribers.remove(&id);
    }

    /// Queues an event for every subscriber. `bytes` is its size as received.
    pub(crate) fn publish(&self, event: &Event, bytes: usize) {
        let mut state = self.lock();
        state.track_running(event);
        for queue in state.subscribers.values() {
            queue.push(event, bytes);
        }
    }

    /// Ends all streams, each with `error()` if that is one.
    pub(crate) fn finish(&self, error: impl Fn() -> Option<Error>) {
        let mut state = self.lock();
        state.finished = true;
        for queue in state.subscribers.values() {
            queue.finish(error());
        }
    }

    /// The id of the running turn, as far as events of this connection show it.
    pub(crate) fn running(&self, thread_id: &str) -> Option<String> {
        self.lock().running.get(thread_id).cloned()
    }

    /// Whether a server request of the thread is being handled.
    pub(crate) fn has_open_request(&self, thread_id: &str) -> bool {
        self.lock().open_requests.contains_key(thread_id)
    }

    /// Counts a server request of a thread until the guard is dropped.
    pub(crate) fn track_request(self: &Arc<Self>, thread_id: Option<String>) -> Option<OpenRequestGuard> {
        let thread_id = thread_id?;
        *self.lock().open_requests.entry(thread_id.clone()).or_default() += 1;
        Some(OpenRequestGuard { hub: Arc::clone(self), thread_id })
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.0.lock()
    }
}

impl HubState {
    fn track_running(&mut self, event: &Event) {
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

pub(crate) struct OpenRequestGuard {
    hub: Arc<Hub>,
    thread_id: String,
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        if let Some(count) = state.open_requests.get_mut(&self.thread_id) {
            *count -= 1;
            if *count == 0 {
                state.open_requests.remove(&self.thread_id);
            }
        }
    }
}

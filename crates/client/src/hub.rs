//! [`Hub`]: publishes events to all subscribers. It outlives connections, so streams go on after a reconnect. Also
//! tracks the running turn and the open server requests of each thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loomd_protocol::{ServerNotification, TurnStatus};
use parking_lot::{Mutex, MutexGuard};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::events::{Events, Filter, Queue};
use crate::positions::Positions;

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
    positions: Positions,
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

    /// Whether an event of a thread is new; one without an id always is.
    pub(crate) fn is_new(&self, thread_id: Option<&str>, event_id: Option<u128>) -> bool {
        let (Some(thread_id), Some(event_id)) = (thread_id, event_id) else { return true };
        self.lock().positions.is_new(thread_id, event_id)
    }

    /// The last event of a thread that was received.
    pub(crate) fn last_event(&self, thread_id: &str) -> Option<u128> {
        self.lock().positions.last(thread_id)
    }

    /// Ignores events of these threads until they are resumed.
    pub(crate) fn resuming(&self, thread_ids: Vec<String>) {
        self.lock().positions.resuming(thread_ids);
    }

    /// A thread was resumed: with its state right after an event, or (`None`) with the events that were missed.
    pub(crate) fn resumed(&self, thread_id: &str, at: Option<u128>) {
        self.lock().positions.resumed(thread_id, at);
    }

    pub(crate) fn not_resumed(&self, thread_id: &str) {
        self.lock().positions.not_resumed(thread_id);
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

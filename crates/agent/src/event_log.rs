//! The event log of a thread. Every event gets its id here, is kept for a while, and is sent to the subscribers in the
//! order of the ids. A client joins with a snapshot right after some event, and gets every later one exactly once.

#[cfg(test)]
mod approval_tests;
mod approvals;
mod join;
mod joining;
mod kept_approvals;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod memory_tests;
mod open_items;
mod recent;
mod size;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use loomd_protocol::{ServerNotification, ThreadItem, ThreadReplayReason};
use parking_lot::Mutex;
use tokio::sync::{MutexGuard, Notify};

use crate::approval::Approval;
use crate::event::{Event, EventId, EventKind};
use crate::event_sink::{Audience, EventSink, Subscriber};
pub(crate) use approvals::word;
use joining::JoiningClient;
pub(crate) use kept_approvals::KeptApprovals;
use open_items::OpenItems;
pub(crate) use recent::EventBudget;
use recent::RecentEvents;

/// Events that wait for clients that are joining, in bytes. Beyond it, publishers wait until these have joined, which
/// takes as long as reading what was added to the rollout since it was read last.
const MAX_TAIL: usize = 4 * 1024 * 1024;

/// The events of a thread. Shared by the thread's task and the turn that it runs.
pub(crate) struct EventLog {
    sink: Arc<dyn EventSink>,
    /// Held from the numbering of an event until it is in the outbound queues, so that every client gets events in the
    /// order of their ids. Not held across reads of the history.
    order: tokio::sync::Mutex<()>,
    /// Never held across an await.
    state: Mutex<LogState>,
    /// The bytes of all tails.
    tail: AtomicUsize,
    /// A tail was sent, or dropped.
    tail_sent: Notify,
    /// A client has subscribed.
    subscribed: Notify,
    /// Nothing more is sent: the thread is another process's.
    silent: AtomicBool,
    /// The approvals of the thread, open and decided.
    pub kept: Arc<KeptApprovals>,
}

struct LogState {
    /// The id before the first event.
    first: EventId,
    /// Ids below it are of earlier holders of the thread's lease, or may be.
    own: EventId,
    last: EventId,
    recent: RecentEvents,
    /// Replaced when it changes, so that a publisher takes it without a copy.
    subscribers: Arc<[Subscriber]>,
    joining: Vec<JoiningClient>,
    items: OpenItems,
    /// The open approvals by the ids of their events.
    approvals: BTreeMap<EventId, Arc<Approval>>,
}

impl LogState {
    /// Gives an event its id and keeps it; the bytes that were added to tails, too.
    fn append(&mut self, kind: EventKind) -> (Event, usize) {
        self.last = self.last.next();
        let event = Event::new(self.last, kind);
        let size = size::of(&event.kind);
        self.recent.push(event.clone(), size);
        for joining in &mut self.joining {
            joining.push(event.clone(), size);
        }
        (event, size * self.joining.len())
    }

    /// The events after one of them, or why they are not known.
    fn after(&self, id: EventId) -> Result<Vec<Event>, ThreadReplayReason> {
        if id > self.last {
            return Err(ThreadReplayReason::UnknownEvent);
        }
        let too_old = if id < self.own { ThreadReplayReason::NotLoaded } else { ThreadReplayReason::TooOld };
        self.recent.after(id).ok_or(too_old)
    }

    /// The events that a client has missed since one of them, or why they are not known.
    fn missed(&self, after: EventId) -> Result<Vec<Event>, ThreadReplayReason> {
        let mut events = self.after(after)?;
        events.retain(|event| event.kind.names_thread());
        Ok(events)
    }

    fn joining(&self) -> Vec<Subscriber> {
        self.joining.iter().map(|joining| joining.subscriber).collect()
    }

    fn subscribe(&mut self, subscriber: Subscriber) {
        if !self.subscribers.contains(&subscriber) {
            self.subscribers = self.subscribers.iter().copied().chain([subscriber]).collect();
        }
    }

    /// False when it was not subscribed.
    fn unsubscribe(&mut self, subscriber: Subscriber) -> bool {
        let was = self.subscribers.contains(&subscriber);
        if was {
            self.subscribers = self.subscribers.iter().copied().filter(|other| *other != subscriber).collect();
        }
        was
    }
}

impl EventLog {
    /// `epoch` must be greater than that of every earlier log of the thread.
    pub fn new(sink: Arc<dyn EventSink>, subscribers: Vec<Subscriber>, epoch: u64, budget: Arc<EventBudget>) -> Self {
        let last = EventId::before(epoch);
        let state = LogState {
            first: last,
            own: last,
            last,
            recent: RecentEvents::new(last, budget),
            subscribers: subscribers.into(),
            joining: Vec::new(),
            items: OpenItems::default(),
            approvals: BTreeMap::new(),
        };
        Self {
            sink,
            order: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            tail: AtomicUsize::new(0),
            tail_sent: Notify::new(),
            subscribed: Notify::new(),
            silent: AtomicBool::new(false),
            kept: Arc::default(),
        }
    }

    /// The same log with approvals that are kept elsewhere.
    pub fn with_approvals(self, kept: KeptApprovals) -> Self {
        Self { kept: Arc::new(kept), ..self }
    }

    /// Publishes a notification to the subscribers. `item/completed` of an item that is not open is dropped.
    pub async fn publish(&self, mut notification: ServerNotification) {
        match &notification {
            ServerNotification::TurnStarted(started) => self.kept.turn_started(&started.turn.id),
            ServerNotification::TurnCompleted(completed) => self.kept.turn_ended(&completed.turn.id).await,
            _ => {}
        }
        let _order = self.ordered().await;
        let (event, to) = {
            let mut state = self.state.lock();
            // Noted under the same lock as the id is given: a client that joins finds a delta either in its snapshot
            // or in its tail.
            if !state.items.note(&mut notification) {
                return;
            }
            (self.append(&mut state, EventKind::Notification(Arc::new(notification))), Arc::clone(&state.subscribers))
        };
        if !to.is_empty() {
            self.send(Audience::Only(&to), &event).await;
        }
    }

    /// Sends a notification to certain clients, after what was published before. It is no event of the thread.
    pub async fn notify(&self, subscribers: &[Subscriber], notification: ServerNotification) {
        let _order = self.ordered().await;
        if !self.is_silent() {
            self.sink.notify(subscribers, notification).await;
        }
    }

    /// Publishes a notification to every client of the server.
    pub async fn broadcast(&self, notification: ServerNotification) {
        self.broadcast_if(|| Some(notification)).await;
    }

    /// Publishes what `notification` returns to every client of the server. It is called in the order of the events.
    pub async fn broadcast_if(&self, notification: impl FnOnce() -> Option<ServerNotification>) {
        let _order = self.ordered().await;
        let Some(notification) = notification() else { return };
        let (event, joining, subscribers) = {
            let mut state = self.state.lock();
            let event = self.append(&mut state, EventKind::Notification(Arc::new(notification)));
            (event, state.joining(), Arc::clone(&state.subscribers))
        };
        self.send(Audience::Everyone { subscribers: &subscribers, joining: &joining }, &event).await;
    }

    /// The clients that have subscribed or are about to.
    pub fn subscribers(&self) -> Vec<Subscriber> {
        let state = self.state.lock();
        state.subscribers.iter().copied().chain(state.joining()).collect()
    }

    pub fn has_subscribers(&self) -> bool {
        !self.state.lock().subscribers.is_empty()
    }

    /// Resolves when there is a subscriber. Cancel-safe.
    pub async fn subscribed(&self) {
        loop {
            let subscribed = self.subscribed.notified();
            if self.has_subscribers() {
                return;
            }
            subscribed.await;
        }
    }

    /// Ends a subscription: when this returns, all that was published before has been sent. `None` when there was
    /// none, else how many are left.
    pub async fn unsubscribe(&self, subscriber: Subscriber) -> Option<usize> {
        let _order = self.order.lock().await;
        let mut state = self.state.lock();
        state.unsubscribe(subscriber).then(|| state.subscribers.len())
    }

    /// The events after one of this thread, as long as the log reaches back to it. `None` when events after it have
    /// been dropped, or it is not an id of this log.
    pub fn after(&self, id: EventId) -> Option<Vec<Event>> {
        self.state.lock().after(id).ok()
    }

    /// Calls `reply` with the id of the last event. Nothing is published meanwhile.
    pub async fn at_last(&self, reply: impl FnOnce(EventId)) {
        let _order = self.order.lock().await;
        let last = self.state.lock().last;
        reply(last);
    }

    /// The id before the first event, which no other load of the thread has.
    pub fn epoch(&self) -> String {
        self.state.lock().first.to_string()
    }

    /// Begins with the ids of an ownership, before the first event. Several processes number the events of a thread by the
    /// epochs of their store alone: their clocks may differ.
    pub fn begin_at(&self, epoch: u64) {
        let mut state = self.state.lock();
        let before = EventId::before_lease(epoch);
        (state.first, state.last, state.own) = (before, before, before);
        state.recent.clear(before);
    }

    /// Sends nothing from now on.
    pub fn silence(&self) {
        self.silent.store(true, Ordering::Release);
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Acquire)
    }

    /// Sends an event that has its id.
    async fn send(&self, to: Audience<'_>, event: &Event) {
        if !self.is_silent() {
            self.sink.send(to, event).await;
        }
    }

    /// Raises the ids of later events above those of every earlier holder of the thread's lease.
    pub fn follow_lease(&self, epoch: u64) {
        let mut state = self.state.lock();
        let before = EventId::before_lease(epoch);
        if before > state.last {
            // An id in between is of an earlier holder, whose events are not known here.
            (state.last, state.own) = (before, before);
            state.recent.clear(before);
        }
    }

    /// Drops the events that are kept.
    pub fn forget_recent(&self) {
        let mut state = self.state.lock();
        let last = state.last;
        state.recent.clear(last);
    }

    /// The items that were started in a turn and have not completed, with the text and output published so far.
    pub fn open_items(&self, turn_id: &str) -> Vec<ThreadItem> {
        self.state.lock().items.of(turn_id)
    }

    /// Forgets an item that was started and will never be shown as completed.
    pub fn forget_item(&self, turn_id: &str, item_id: &str) {
        _ = self.state.lock().items.remove(turn_id, item_id);
    }

    /// Whether an item of any turn was started and has not completed.
    pub fn has_open_items(&self) -> bool {
        !self.state.lock().items.is_empty()
    }

    fn append(&self, state: &mut LogState, kind: EventKind) -> Event {
        let (event, tail) = state.append(kind);
        if tail > 0 {
            self.tail.fetch_add(tail, Ordering::Relaxed);
        }
        event
    }

    /// The right to publish the next event. Waits while too much waits for clients that are joining.
    async fn ordered(&self) -> MutexGuard<'_, ()> {
        loop {
            let order = self.order.lock().await;
            if self.tail.load(Ordering::Relaxed) <= MAX_TAIL {
                return order;
            }
            let sent = self.tail_sent.notified();
            if self.tail.load(Ordering::Relaxed) > MAX_TAIL {
                drop(order);
                sent.await;
            }
        }
    }
}

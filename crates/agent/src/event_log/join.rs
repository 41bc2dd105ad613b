//! Joining a thread: a snapshot right after some event, then every later event. Between the two no lock is held: what
//! is published while the history is read waits in a tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loomd_protocol::{ServerNotification, ThreadItem, ThreadReplayReason, Turn};
use tokio::sync::MutexGuard;

use super::EventLog;
use super::joining::JoiningClient;
use crate::event::{Event, EventId, EventKind, MissedEvents};
use crate::event_sink::{Audience, Subscriber};

/// A join whose snapshot is being made. Dropped before it is held, it leaves the client as it was.
pub(crate) struct Join<'a> {
    log: &'a EventLog,
    subscriber: Subscriber,
    at: EventId,
    missed: Missed,
    open: Vec<ThreadItem>,
}

/// The events between the last one that a joining client has, if it says so, and its snapshot.
struct Missed {
    after: Option<EventId>,
    events: Result<Vec<Event>, ThreadReplayReason>,
}

/// A join whose snapshot is ready: nothing is published until the client is subscribed or refused.
pub(crate) struct HeldJoin<'a> {
    log: &'a EventLog,
    _order: MutexGuard<'a, ()>,
    subscriber: Subscriber,
    was_subscribed: bool,
    at: EventId,
    missed: Missed,
    open: Vec<ThreadItem>,
    tail: Vec<Event>,
}

impl EventLog {
    /// Begins a join right after the last event. `capture` reads what else belongs to the snapshot, at the same place
    /// in the order of events. `turn_id` is the turn whose open items are shown; `after` is the last event that the
    /// client has.
    pub async fn join<T>(
        &self,
        subscriber: Subscriber,
        turn_id: Option<&str>,
        after: Option<EventId>,
        capture: impl FnOnce() -> T,
    ) -> (Join<'_>, T) {
        // What was published so far is in the outbound queues, ahead of the snapshot.
        let _order = self.order.lock().await;
        let mut state = self.state.lock();
        let was_subscribed = state.unsubscribe(subscriber);
        state.joining.push(JoiningClient { subscriber, was_subscribed, tail: Vec::new(), bytes: 0 });
        let open = turn_id.map(|turn_id| state.items.of(turn_id)).unwrap_or_default();
        let missed = Missed { after, events: after.map_or_else(|| Ok(Vec::new()), |after| state.missed(after)) };
        (Join { log: self, subscriber, at: state.last, missed, open }, capture())
    }

    fn take_joining(&self, subscriber: Subscriber) -> Option<JoiningClient> {
        let mut state = self.state.lock();
        let index = state.joining.iter().position(|joining| joining.subscriber == subscriber)?;
        let joining = state.joining.remove(index);
        self.tail.fetch_sub(joining.bytes, Ordering::Relaxed);
        Some(joining)
    }
}

impl<'a> Join<'a> {
    /// Stops publishing, to send the snapshot and what comes after it.
    pub async fn hold(mut self) -> HeldJoin<'a> {
        let order = self.log.order.lock().await;
        let joining = self.log.take_joining(self.subscriber);
        let (was_subscribed, tail) =
            joining.map_or((false, Vec::new()), |joining| (joining.was_subscribed, joining.tail));
        let open = std::mem::take(&mut self.open);
        let none = Missed { after: None, events: Ok(Vec::new()) };
        let missed = std::mem::replace(&mut self.missed, none);
        let (log, subscriber, at) = (self.log, self.subscriber, self.at);
        HeldJoin { log, _order: order, subscriber, was_subscribed, at, missed, open, tail }
    }
}

impl Drop for Join<'_> {
    fn drop(&mut self) {
        if let Some(joining) = self.log.take_joining(self.subscriber) {
            if joining.was_subscribed {
                self.log.state.lock().subscribe(self.subscriber);
            }
            self.log.tail_sent.notify_waiters();
        }
    }
}

impl HeldJoin<'_> {
    /// The event right after which the snapshot shows the thread.
    pub fn at(&self) -> EventId {
        self.at
    }

    /// What becomes of the events that the client has missed; `None` when it did not name the last one that it has.
    pub fn missed(&self) -> Option<MissedEvents> {
        self.missed.after.map(|_| match &self.missed.events {
            Ok(_) => MissedEvents::Follow,
            Err(reason) => MissedEvents::Unknown(*reason),
        })
    }

    /// The items that were open when the join began.
    pub fn open_items(&self) -> Vec<String> {
        self.open.iter().map(|item| item.id().to_owned()).collect()
    }

    /// Resets the running turn of the snapshot to its state when the join began. The rollout may be ahead of the events:
    /// records of items that were open then, or were started since, are replaced by events.
    pub fn show(&self, turn: &mut Turn) {
        let started = self.tail.iter().filter_map(|event| match &event.kind {
            EventKind::Notification(notification) => match &**notification {
                ServerNotification::ItemStarted(started) if started.turn_id == turn.id => Some(&started.item),
                _ => None,
            },
            _ => None,
        });
        let later: Vec<&ThreadItem> = self.open.iter().chain(started).collect();
        turn.items.retain(|item| !later.iter().any(|later| is_same(item, later)));
        turn.items.extend(self.open.iter().cloned());
    }

    /// Subscribes the client. Sends it the approvals that were open before the events that it has missed and still are,
    /// then these events, then what was published since the join began.
    pub async fn subscribe(mut self) {
        let missed = std::mem::replace(&mut self.missed.events, Ok(Vec::new()));
        let shown = match (&missed, self.missed.after) {
            (Ok(_), Some(after)) => after,
            _ => self.at,
        };
        let mut first: Vec<_> = {
            let state = self.log.state.lock();
            let open = state.approvals.range(..=shown);
            let requested = |approval| EventKind::ApprovalRequested(Arc::clone(approval));
            open.map(|(id, approval)| Event::new(*id, requested(approval))).collect()
        };
        first.extend(missed.unwrap_or_default());
        self.send(first).await;
    }

    /// Leaves the client as it was: without a subscription, or with the one that it had.
    pub async fn refuse(self) {
        if self.was_subscribed {
            self.send(Vec::new()).await;
        } else {
            self.log.tail_sent.notify_waiters();
        }
    }

    async fn send(self, first: Vec<Event>) {
        for event in first.iter().chain(&self.tail) {
            self.log.send(Audience::Only(&[self.subscriber]), event).await;
        }
        self.log.state.lock().subscribe(self.subscriber);
        self.log.subscribed.notify_waiters();
        self.log.tail_sent.notify_waiters();
    }
}

/// The two markers of a review share one id.
fn is_same(one: &ThreadItem, other: &ThreadItem) -> bool {
    one.id() == other.id() && std::mem::discriminant(one) == std::mem::discriminant(other)
}

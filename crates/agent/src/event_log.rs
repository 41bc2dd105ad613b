//! Who listens to a thread, and telling them. What is told is ordered with who listens: somebody who joins
//! gets every later piece of news and no earlier one.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_protocol::{ServerNotification, ServerRequest, ThreadItem};
use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use crate::event_sink::{Audience, EventSink, PendingRequest, Subscriber};
use crate::partial::{add_delta, delta_of};

/// A thread's listeners. Shared by the thread's task and the turn that it runs.
pub(crate) struct EventLog {
    event_sink: Arc<dyn EventSink>,
    subscribers: tokio::sync::Mutex<Vec<Subscriber>>,
    /// Items that were shown as started and not yet as completed, by turn.
    open: Mutex<BTreeMap<String, Vec<ThreadItem>>>,
}

impl EventLog {
    pub fn new(event_sink: Arc<dyn EventSink>, subscribers: Vec<Subscriber>) -> Self {
        Self { event_sink, subscribers: tokio::sync::Mutex::new(subscribers), open: Mutex::default() }
    }

    /// Publishes a notification to the subscribers. An item ends only once, whoever says so first.
    pub async fn publish(&self, notification: ServerNotification) {
        // Open items change under the lock that a joining client holds while it looks at them: it sees a delta
        // either in its snapshot or as an event, never both.
        let subscribers = self.subscribers.lock().await;
        if self.note(&notification) && !subscribers.is_empty() {
            self.event_sink.send(Audience::Only(&subscribers), notification).await;
        }
    }

    /// Tells every client of the server.
    pub async fn broadcast(&self, notification: ServerNotification) {
        self.broadcast_if(|| Some(notification)).await;
    }

    /// Tells every client of the server what there is to publish, if anything, once it is its turn to be told.
    pub async fn broadcast_if(&self, news: impl FnOnce() -> Option<ServerNotification>) {
        // Held so that the order is the same for all.
        let _subscribers = self.subscribers.lock().await;
        if let Some(notification) = news() {
            self.event_sink.send(Audience::Everyone, notification).await;
        }
    }

    /// The listeners, while nothing is told.
    pub async fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().await
    }

    /// Puts a question to those who listen.
    pub async fn request(&self, thread_id: &str, request: ServerRequest) -> PendingRequest {
        let subscribers = self.subscribers.lock().await;
        self.event_sink.request(thread_id, &subscribers, request)
    }

    /// Puts the open questions to somebody who just joined.
    pub fn resend_open(&self, thread_id: &str, subscriber: Subscriber) {
        self.event_sink.resend_open(thread_id, subscriber);
    }

    /// What was started in a turn and has not completed, with the text and output published so far.
    pub fn open_items(&self, turn_id: &str) -> Vec<ThreadItem> {
        self.open.lock().get(turn_id).cloned().unwrap_or_default()
    }

    /// Forgets an item that was started and will never be shown as completed.
    pub fn forget_item(&self, turn_id: &str, item_id: &str) {
        let mut open = self.open.lock();
        if let Some(items) = open.get_mut(turn_id) {
            items.retain(|item| item.id() != item_id);
            if items.is_empty() {
                open.remove(turn_id);
            }
        }
    }

    /// Whether something that was started, in any turn, has not completed.
    pub fn has_open_items(&self) -> bool {
        !self.open.lock().is_empty()
    }

    /// False when there is nothing to publish: the item has ended, or never began.
    fn note(&self, notification: &ServerNotification) -> bool {
        match notification {
            ServerNotification::ItemStarted(started) => {
                let mut open = self.open.lock();
                open.entry(started.turn_id.clone()).or_default().push(started.item.clone());
            }
            ServerNotification::ItemCompleted(completed) => {
                let mut open = self.open.lock();
                let Some(items) = open.get_mut(&completed.turn_id) else { return false };
                let (id, before) = (completed.item.id(), items.len());
                items.retain(|item| item.id() != id);
                let ended = items.len() < before;
                if items.is_empty() {
                    open.remove(&completed.turn_id);
                }
                return ended;
            }
            delta => {
                if let Some((turn_id, item_id)) = delta_of(delta)
                    && let Some(items) = self.open.lock().get_mut(turn_id)
                    && let Some(item) = items.iter_mut().find(|item| item.id() == item_id)
                {
                    add_delta(item, delta);
                }
            }
        }
        true
    }
}

//! Who listens to a thread, and telling them. What is told is ordered with who listens: somebody who joins
//! gets every later piece of news and no earlier one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use loomd_protocol::{ServerNotification, ServerRequest, ThreadItem};
use tokio::sync::MutexGuard;

use crate::outlet::{Audience, Outlet, Question, Subscriber};

/// A thread's listeners. Shared by the thread's task and the turn that it runs.
pub(crate) struct Hub {
    outlet: Arc<dyn Outlet>,
    subscribers: tokio::sync::Mutex<Vec<Subscriber>>,
    /// Items that were shown as started and not yet as completed, by turn.
    open: Mutex<BTreeMap<String, Vec<ThreadItem>>>,
}

impl Hub {
    pub fn new(outlet: Arc<dyn Outlet>, subscribers: Vec<Subscriber>) -> Self {
        Self { outlet, subscribers: tokio::sync::Mutex::new(subscribers), open: Mutex::default() }
    }

    /// Tells those who listen. An item ends only once, whoever says so first.
    pub async fn tell(&self, notification: ServerNotification) {
        if !self.note(&notification) {
            return;
        }
        let subscribers = self.subscribers.lock().await;
        if !subscribers.is_empty() {
            self.outlet.send(Audience::Only(&subscribers), notification).await;
        }
    }

    /// Tells every client of the server.
    pub async fn tell_everyone(&self, notification: ServerNotification) {
        self.tell_everyone_if(|| Some(notification)).await;
    }

    /// Tells every client of the server what there is to tell, if anything, once it is its turn to be told.
    pub async fn tell_everyone_if(&self, news: impl FnOnce() -> Option<ServerNotification>) {
        // Held so that the order is the same for all.
        let _subscribers = self.subscribers.lock().await;
        if let Some(notification) = news() {
            self.outlet.send(Audience::Everyone, notification).await;
        }
    }

    /// The listeners, while nothing is told.
    pub async fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().await
    }

    /// Puts a question to those who listen.
    pub async fn ask(&self, thread_id: &str, request: ServerRequest) -> Question {
        let subscribers = self.subscribers.lock().await;
        self.outlet.ask(thread_id, &subscribers, request)
    }

    /// Puts the open questions to somebody who just joined.
    pub fn ask_again(&self, thread_id: &str, subscriber: Subscriber) {
        self.outlet.ask_again(thread_id, subscriber);
    }

    /// What was started in a turn and has not completed.
    pub fn open_items(&self, turn_id: &str) -> Vec<ThreadItem> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(turn_id).cloned().unwrap_or_default()
    }

    /// Whether something that was started, in any turn, has not completed.
    pub fn has_open_items(&self) -> bool {
        !self.open.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// False when there is nothing to tell: the item has ended, or never began.
    fn note(&self, notification: &ServerNotification) -> bool {
        match notification {
            ServerNotification::ItemStarted(started) => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.entry(started.turn_id.clone()).or_default().push(started.item.clone());
            }
            ServerNotification::ItemCompleted(completed) => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(items) = open.get_mut(&completed.turn_id) else { return false };
                let (id, before) = (completed.item.id(), items.len());
                items.retain(|item| item.id() != id);
                let ended = items.len() < before;
                if items.is_empty() {
                    open.remove(&completed.turn_id);
                }
                return ended;
            }
            _ => {}
        }
        true
    }
}

//! Search sessions: a client starts one, sends the current query, and gets the best files for the latest one.
//!
//! Each session is a task. A query that arrives during a search replaces the one before. A second task keeps the
//! trees current and triggers a new search when they change.

mod refresh;

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_protocol::{
    FuzzyFileSearchResult, FuzzyFileSearchSessionCompletedNotification as Completed,
    FuzzyFileSearchSessionUpdatedNotification as Updated,
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::Trees;
use crate::roots::{Root, search};
use crate::trees::SharedTree;

/// Sessions of all clients at a time. Each holds trees in memory.
const MAX_SESSIONS: usize = 256;

/// A connection that uses a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchSubscriber(pub u64);

/// A notification of a session to its subscribers.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    Updated(Updated),
    Completed(Completed),
}

/// Sends an event to clients.
pub type Deliver =
    Box<dyn Fn(Vec<SearchSubscriber>, SessionEvent) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    #[error("sessionId must not be empty")]
    NoId,
    #[error("failed to start fuzzy file search session: at least one search directory is required")]
    NoRoots,
    #[error("failed to start fuzzy file search session: there are {MAX_SESSIONS} already")]
    TooMany,
    #[error("fuzzy file search session not found: {0}")]
    NotFound(String),
}

/// All sessions. Any client may use any of them; one ends when its last subscriber disconnects.
pub struct Sessions {
    trees: Arc<Trees>,
    deliver: Arc<Deliver>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    pub fn new(trees: Arc<Trees>, deliver: Deliver) -> Self {
        Self { trees, deliver: Arc::new(deliver), sessions: Mutex::default() }
    }

    /// Starts a session. A session with this id is ended without a notification.
    pub fn start(&self, subscriber: SearchSubscriber, id: String, roots: &[String]) -> Result<(), SessionError> {
        if id.is_empty() {
            return Err(SessionError::NoId);
        }
        if roots.is_empty() {
            return Err(SessionError::NoRoots);
        }
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&id) {
            return Err(SessionError::TooMany);
        }
        self.trees.start_eviction();
        let session = Arc::new(Session {
            id: id.clone(),
            trees: self.trees.open(roots),
            deliver: Arc::clone(&self.deliver),
            state: Mutex::new(SessionState { subscribers: BTreeSet::from([subscriber]), ..SessionState::default() }),
            wake: Notify::new(),
            delivery: tokio::sync::Mutex::new(()),
            ended: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&session).run());
        if let Some(before) = sessions.insert(id, session) {
            before.end();
        }
        Ok(())
    }

    /// Returns a handle, to be used once the request has been answered.
    pub fn find(&self, subscriber: SearchSubscriber, id: &str) -> Result<SessionHandle, SessionError> {
        let session = self.sessions.lock().get(id).cloned();
        let session = session.ok_or_else(|| SessionError::NotFound(id.to_owned()))?;
        session.state.lock().subscribers.insert(subscriber);
        Ok(SessionHandle(session))
    }

    /// Ends a session, if it exists. No event follows once this returns.
    pub async fn stop(&self, id: &str) {
        let session = self.sessions.lock().remove(id);
        if let Some(session) = session {
            session.end();
            _ = session.delivery.lock().await;
        }
    }

    /// Removes a client, and the sessions without further subscribers.
    pub fn disconnect(&self, subscriber: SearchSubscriber) {
        self.sessions.lock().retain(|_, session| {
            let mut state = session.state.lock();
            state.subscribers.remove(&subscriber);
            let used = !state.subscribers.is_empty();
            drop(state);
            if !used {
                session.end();
            }
            used
        });
    }
}

/// A handle to set the query of a session.
pub struct SessionHandle(Arc<Session>);

impl SessionHandle {
    /// Sets the query, which cancels the current search.
    pub fn set_query(self, query: String) {
        let mut state = self.0.state.lock();
        state.query = query;
        state.pending += 1;
        state.searching.store(true, Ordering::Relaxed);
        drop(state);
        self.0.wake.notify_one();
    }
}

struct Session {
    id: String,
    trees: Vec<(Root, Arc<SharedTree>)>,
    deliver: Arc<Deliver>,
    state: Mutex<SessionState>,
    /// Signals a new query or changed trees.
    wake: Notify,
    /// Held while an event is delivered.
    delivery: tokio::sync::Mutex<()>,
    ended: CancellationToken,
}

#[derive(Default)]
struct SessionState {
    subscribers: BTreeSet<SearchSubscriber>,
    query: String,
    /// Number of queries since the last result.
    pending: usize,
    /// Whether the trees have changed since the last result.
    stale: bool,
    /// Set to cancel the current search.
    searching: Arc<AtomicBool>,
}

impl Session {
    async fn run(self: Arc<Self>) {
        let work = async {
            self.read_trees().await;
            // The end of the walk publishes a result without a query.
            self.state.lock().pending += 1;
            tokio::spawn(Arc::clone(&self).keep_current());
            loop {
                self.answer().await;
                self.wake.notified().await;
            }
        };
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = work => {}
        }
    }

    /// Refreshes the trees, which takes a while for a new one.
    async fn read_trees(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let read = spawn_blocking(move || {
            let cancelled = AtomicBool::new(false);
            session.trees.iter().for_each(|(_, tree)| _ = tree.refresh(&cancelled));
        });
        _ = read.await;
    }

    /// Searches until query and trees are unchanged.
    async fn answer(self: &Arc<Self>) {
        loop {
            let (query, cancelled) = {
                let mut state = self.state.lock();
                if state.pending == 0 && !state.stale {
                    return;
                }
                state.stale = false;
                state.searching = Arc::default();
                (state.query.clone(), Arc::clone(&state.searching))
            };
            let files = self.search(query.clone(), Arc::clone(&cancelled)).await;
            let answered = {
                let mut state = self.state.lock();
                if state.query != query {
                    continue;
                }
                std::mem::take(&mut state.pending).max(1)
            };
            let session_id = || self.id.clone();
            let updated = Updated { session_id: session_id(), query: query.clone(), files };
            self.publish(SessionEvent::Updated(updated)).await;
            for _ in 0..answered {
                let completed = Completed { session_id: session_id(), query: Some(query.clone()) };
                self.publish(SessionEvent::Completed(completed)).await;
            }
        }
    }

    async fn search(self: &Arc<Self>, query: String, cancelled: Arc<AtomicBool>) -> Vec<FuzzyFileSearchResult> {
        let session = Arc::clone(self);
        let found = spawn_blocking(move || {
            let indexed: Vec<_> = session.trees.iter().map(|(root, tree)| (root.clone(), tree.index())).collect();
            search(&query, &indexed, &cancelled)
        });
        found.await.unwrap_or_default()
    }

    async fn publish(&self, event: SessionEvent) {
        let _delivery = self.delivery.lock().await;
        if self.ended.is_cancelled() {
            return;
        }
        let subscribers = self.state.lock().subscribers.iter().copied().collect();
        (self.deliver)(subscribers, event).await;
    }

    fn end(&self) {
        self.ended.cancel();
        self.state.lock().searching.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

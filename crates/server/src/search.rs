//! The state that the file searches of all clients share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_agent::working_directory;
use loomd_protocol::{AbsolutePathBuf, ServerNotification};
use loomd_search::{Deliver, SessionEvent, Sessions, Trees};
use parking_lot::Mutex;

use crate::connections::{ConnectionId, Connections};
use crate::outbound::Notification;

/// The state that the searches of all clients share.
pub(crate) struct Search {
    pub trees: Arc<Trees>,
    pub sessions: Sessions,
    tokens: Mutex<HashMap<String, Arc<AtomicBool>>>,
}

impl Search {
    pub fn new(connections: Arc<Connections>) -> Self {
        let cwd = working_directory().map_or_else(|_| PathBuf::from("/"), AbsolutePathBuf::into_path_buf);
        let trees = Arc::new(Trees::new(cwd));
        let sessions = Sessions::new(Arc::clone(&trees), deliver(connections));
        Self { trees, sessions, tokens: Mutex::default() }
    }

    /// Cancels the earlier search with the same token.
    pub fn supersede(&self, token: Option<String>) -> CancelOnDrop<'_> {
        let cancelled = Arc::new(AtomicBool::new(false));
        if let Some(token) = &token {
            let mut tokens = self.tokens.lock();
            if let Some(earlier) = tokens.insert(token.clone(), Arc::clone(&cancelled)) {
                earlier.store(true, Ordering::Relaxed);
            }
        }
        CancelOnDrop { search: self, token, cancelled }
    }
}

/// Cancels a search when it is dropped, and when a later search has the same token.
pub(crate) struct CancelOnDrop<'a> {
    search: &'a Search,
    token: Option<String>,
    pub cancelled: Arc<AtomicBool>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(token) = &self.token {
            let mut tokens = self.search.tokens.lock();
            if tokens.get(token).is_some_and(|latest| Arc::ptr_eq(latest, &self.cancelled)) {
                tokens.remove(token);
            }
        }
    }
}

fn deliver(connections: Arc<Connections>) -> Deliver {
    Box::new(move |users, event| {
        let connections = Arc::clone(&connections);
        Box::pin(async move {
            let notification = Notification::new(match event {
                SessionEvent::Updated(updated) => ServerNotification::FuzzyFileSearchSessionUpdated(updated),
                SessionEvent::Completed(completed) => ServerNotification::FuzzyFileSearchSessionCompleted(completed),
            });
            connections.send_to(users.iter().map(|user| ConnectionId(user.0)), &notification).await;
        })
    })
}

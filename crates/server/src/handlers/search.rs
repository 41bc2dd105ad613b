//! `fuzzyFileSearch` and its sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_agent::working_directory;
use loomd_protocol::{
    AbsolutePathBuf, FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionStartParams,
    FuzzyFileSearchSessionStartResponse, FuzzyFileSearchSessionStopParams, FuzzyFileSearchSessionStopResponse,
    FuzzyFileSearchSessionUpdateParams, FuzzyFileSearchSessionUpdateResponse, RpcError, ServerNotification, call,
};
use loomd_search::{Deliver, SearchSubscriber, SessionError, SessionEvent, Sessions, Trees};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tracing::error;

use crate::answer::{Handled, answer};
use crate::connections::{ConnectionId, Connections};
use crate::dispatch::Context;
use crate::outbox::Notification;

/// The state that the searches of all clients share.
pub(crate) struct Search {
    trees: Arc<Trees>,
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
    fn supersede(&self, token: Option<String>) -> CancelOnDrop<'_> {
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
struct CancelOnDrop<'a> {
    search: &'a Search,
    token: Option<String>,
    cancelled: Arc<AtomicBool>,
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

/// `fuzzyFileSearch`
pub(crate) async fn once(cx: &Context, params: FuzzyFileSearchParams) -> Handled<call::FuzzyFileSearch> {
    let FuzzyFileSearchParams { query, roots, cancellation_token } = params;
    let search = &cx.app.search;
    search.trees.start_eviction();
    let search_guard = search.supersede(cancellation_token);
    let (trees, cancelled) = (Arc::clone(&search.trees), Arc::clone(&search_guard.cancelled));
    let files = spawn_blocking(move || trees.search(&query, &roots, &cancelled)).await;
    let files = files.map_err(|error| RpcError::internal(format!("the search failed: {error}")))?;
    answer(FuzzyFileSearchResponse { files })
}

/// `fuzzyFileSearch/sessionStart`
pub(crate) async fn start(
    cx: &Context,
    params: FuzzyFileSearchSessionStartParams,
) -> Handled<call::FuzzyFileSearchSessionStart> {
    let started = cx.app.search.sessions.start(subscriber(cx), params.session_id, &params.roots);
    started.map_err(wire_error)?;
    answer(FuzzyFileSearchSessionStartResponse {})
}

/// `fuzzyFileSearch/sessionUpdate`
pub(crate) async fn update(
    cx: &Context,
    params: FuzzyFileSearchSessionUpdateParams,
) -> Handled<call::FuzzyFileSearchSessionUpdate> {
    let session = cx.app.search.sessions.find(subscriber(cx), &params.session_id).map_err(wire_error)?;
    let (responder, answer) = cx.answer.responder();
    responder.send(Ok(FuzzyFileSearchSessionUpdateResponse {}));
    session.set_query(params.query);
    Ok(answer)
}

/// `fuzzyFileSearch/sessionStop`: answered when no more notifications will follow.
pub(crate) async fn stop(
    cx: &Context,
    params: FuzzyFileSearchSessionStopParams,
) -> Handled<call::FuzzyFileSearchSessionStop> {
    cx.app.search.sessions.stop(&params.session_id).await;
    answer(FuzzyFileSearchSessionStopResponse {})
}

fn deliver(connections: Arc<Connections>) -> Deliver {
    Box::new(move |users, news| {
        let connections = Arc::clone(&connections);
        Box::pin(async move {
            let notification = Notification::new(match news {
                SessionEvent::Updated(updated) => ServerNotification::FuzzyFileSearchSessionUpdated(updated),
                SessionEvent::Completed(completed) => ServerNotification::FuzzyFileSearchSessionCompleted(completed),
            });
            match notification {
                Ok(notification) => {
                    connections.send_to(users.iter().map(|user| ConnectionId(user.0)), &notification).await;
                }
                Err(error) => error!(%error, "cannot serialize a notification"),
            }
        })
    })
}

fn subscriber(cx: &Context) -> SearchSubscriber {
    SearchSubscriber(cx.connection.0)
}

fn wire_error(error: SessionError) -> RpcError {
    match error {
        SessionError::NoId | SessionError::NotFound(_) => RpcError::invalid_request(error.to_string()),
        SessionError::NoRoots | SessionError::TooMany => RpcError::internal(error.to_string()),
    }
}

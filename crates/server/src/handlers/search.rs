//! `fuzzyFileSearch` and its sessions.

use std::sync::Arc;

use loomd_protocol::{
    FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionStartParams,
    FuzzyFileSearchSessionStartResponse, FuzzyFileSearchSessionStopParams, FuzzyFileSearchSessionStopResponse,
    FuzzyFileSearchSessionUpdateParams, FuzzyFileSearchSessionUpdateResponse, Level, RpcError, call,
};
use loomd_search::{SearchSubscriber, SessionError};
use tokio::task::spawn_blocking;

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `fuzzyFileSearch`
pub(crate) async fn once(cx: &Context, params: FuzzyFileSearchParams) -> Handled<call::FuzzyFileSearch> {
    let FuzzyFileSearchParams { query, roots, cancellation_token } = params;
    // Newer clients never mean the case of what they send.
    let query = if cx.client.level >= Level::V0_166 { query.to_lowercase() } else { query };
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
    session.set_query(match cx.client.level {
        Level::V0_118 => params.query,
        _ => params.query.to_lowercase(),
    });
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

fn subscriber(cx: &Context) -> SearchSubscriber {
    SearchSubscriber(cx.connection.0)
}

fn wire_error(error: SessionError) -> RpcError {
    match error {
        SessionError::NoId | SessionError::NotFound(_) => RpcError::invalid_request(error.to_string()),
        SessionError::NoRoots | SessionError::TooMany => RpcError::internal(error.to_string()),
    }
}

//! `fuzzyFileSearch` and its sessions.

use std::sync::Arc;

use loomd_protocol::{
    FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionStartParams,
    FuzzyFileSearchSessionStartResponse, FuzzyFileSearchSessionStopParams, FuzzyFileSearchSessionStopResponse,
    FuzzyFileSearchSessionUpdateParams, FuzzyFileSearchSessionUpdateResponse, RpcError, call,
};
use loomd_search::{SearchSubscriber, SessionError};
use tokio::task::spawn_blocking;

use crate::context::Context;
use crate::responder::Responder;

/// `fuzzyFileSearch`
pub(crate) async fn once(cx: &Context, params: FuzzyFileSearchParams) -> Result<FuzzyFileSearchResponse, RpcError> {
    let FuzzyFileSearchParams { query, roots, cancellation_token } = params;
    let search = &cx.app.search;
    search.trees.start_eviction();
    let superseding = search.supersede(cancellation_token);
    let (trees, cancelled) = (Arc::clone(&search.trees), Arc::clone(&superseding.cancelled));
    let files = spawn_blocking(move || trees.search(&query, &roots, &cancelled)).await;
    let files = files.map_err(|error| RpcError::internal(format!("the search failed: {error}")))?;
    Ok(FuzzyFileSearchResponse { files })
}

/// `fuzzyFileSearch/sessionStart`
pub(crate) async fn start(
    cx: &Context,
    params: FuzzyFileSearchSessionStartParams,
    responder: Responder<call::FuzzyFileSearchSessionStart>,
) {
    let started = cx.app.search.sessions.start(subscriber(cx), params.session_id, &params.roots);
    responder.answer(started.map(|()| FuzzyFileSearchSessionStartResponse {}).map_err(wire_error));
}

/// `fuzzyFileSearch/sessionUpdate`
pub(crate) async fn update(
    cx: &Context,
    params: FuzzyFileSearchSessionUpdateParams,
    responder: Responder<call::FuzzyFileSearchSessionUpdate>,
) {
    match cx.app.search.sessions.find(subscriber(cx), &params.session_id) {
        Ok(session) => {
            responder.answer(Ok(FuzzyFileSearchSessionUpdateResponse {}));
            session.set_query(params.query);
        }
        Err(error) => responder.answer(Err(wire_error(error))),
    }
}

/// `fuzzyFileSearch/sessionStop`: answered when nothing more will be told.
pub(crate) async fn stop(
    cx: &Context,
    params: FuzzyFileSearchSessionStopParams,
    responder: Responder<call::FuzzyFileSearchSessionStop>,
) {
    cx.app.search.sessions.stop(&params.session_id).await;
    responder.answer(Ok(FuzzyFileSearchSessionStopResponse {}));
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

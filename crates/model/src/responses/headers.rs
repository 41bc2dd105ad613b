//! The headers of a Responses request, also for the handshake of a websocket.

use hyper::HeaderMap;
use hyper::header::HeaderName;

use crate::CallHeaders;
use crate::call::{Caller, insert};

/// All headers but the credentials.
pub(super) fn headers(caller: &Caller, call: &CallHeaders) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let name = HeaderName::from_static;
    insert(&mut headers, name("originator"), &caller.identity.originator);
    insert(&mut headers, name("session_id"), &call.session_id);
    insert(&mut headers, name("x-client-request-id"), &call.session_id);
    for (name, value) in [
        (name("x-codex-turn-metadata"), &call.turn_metadata),
        (name("x-codex-turn-state"), &call.turn_state),
        (name("x-codex-beta-features"), &call.beta_features),
        (name("x-openai-subagent"), &call.subagent),
    ] {
        if let Some(value) = value {
            insert(&mut headers, name, value);
        }
    }
    if let Some(residency) = caller.identity.residency {
        insert(&mut headers, name("x-openai-internal-codex-residency"), residency);
    }
    if caller.provider.is_openai() {
        insert(&mut headers, name("version"), &caller.identity.version);
    }
    headers
}

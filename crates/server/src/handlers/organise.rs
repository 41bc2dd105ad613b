//! What users added to threads, in the threads that clients see, and the errors of the organiser.

use std::collections::BTreeMap;

use loomd_agent::Presence;
use loomd_organiser::{Error, Organiser};
use loomd_protocol::{JsonValue, RpcError, Thread, ThreadReadState};
use loomd_store::ThreadId;
use serde_json::json;

use crate::context::Context;
use crate::refusals::wire_error;

/// The organiser of the server.
pub(super) fn organiser(cx: &Context) -> &Organiser {
    cx.app.agent.organiser()
}

/// Does something with the organiser on a blocking thread.
pub(super) async fn run<T: Send + 'static>(
    cx: &Context,
    work: impl FnOnce(&Organiser) -> loomd_organiser::Result<T> + Send + 'static,
) -> Result<T, RpcError> {
    organiser(cx).run(work).await.map_err(refused)
}

/// Fills in the sections and projects of threads. Returns their read states by their ids.
///
/// A database that cannot be read hides no thread: they are shown without what it holds.
pub(super) async fn add_facts(cx: &Context, threads: &mut [Thread]) -> BTreeMap<String, ThreadReadState> {
    let ids: Vec<ThreadId> = threads.iter().filter_map(|thread| thread.id.parse().ok()).collect();
    let facts = match organiser(cx).run(move |organiser| organiser.facts(&ids)).await {
        Ok(facts) => facts,
        Err(error) => {
            tracing::warn!(%error, "threads are shown without their sections and projects");
            return BTreeMap::new();
        }
    };
    let mut read_states = BTreeMap::new();
    for thread in threads {
        let known = thread.id.parse().ok().and_then(|id: ThreadId| facts.get(&id));
        let Some(known) = known else { continue };
        known.show_in(thread);
        read_states.insert(thread.id.clone(), known.read_state.clone());
    }
    read_states
}

/// The same for one thread.
pub(super) async fn add_facts_to(cx: &Context, thread: &mut Thread) -> Option<ThreadReadState> {
    add_facts(cx, std::slice::from_mut(thread)).await.into_values().next()
}

/// The error that the wire has for a refusal of the organiser. Values are refused with `-32602`.
pub(super) fn refused(error: Error) -> RpcError {
    let message = error.to_string();
    match error {
        Error::ReadStateConflict(present) => RpcError::invalid_request(message).with_data(json!({
            "reason": "readStateConflict", "readState": present,
        })),
        Error::SectionNotFound(_) => RpcError::invalid_params(message).with_data(reason("sectionNotFound")),
        Error::ProjectNotFound(_) | Error::BeforeProjectNotFound(_) => {
            RpcError::invalid_params(message).with_data(reason("projectNotFound"))
        }
        error if error.is_refusal() => RpcError::invalid_params(message),
        _ => RpcError::internal(message),
    }
}

/// Data that names the condition for programs.
pub(super) fn reason(reason: &str) -> JsonValue {
    json!({ "reason": reason })
}

/// A refusal of a thread that is not there, with the code that the call uses.
pub(super) fn thread_not_found(id: &str, code: i64) -> RpcError {
    RpcError { code, message: format!("thread not found: {id}"), data: Some(reason("threadNotFound")) }
}

/// Where a thread is, before something is added to it.
pub(super) async fn presence(cx: &Context, id: ThreadId) -> Result<Presence, RpcError> {
    cx.app.threads().presence(id).await.map_err(wire_error)
}

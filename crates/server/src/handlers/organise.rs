//! What users added to threads, in the threads that clients see, and the errors of the organiser.

use std::collections::BTreeMap;

use loomd_agent::Presence;
use loomd_organiser::{Error, Facts, Organiser};
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
        ShownFacts(Some(known.clone())).show_in(thread);
        read_states.insert(thread.id.clone(), known.read_state.clone());
    }
    read_states
}

/// The same for one thread.
pub(super) async fn add_facts_to(cx: &Context, thread: &mut Thread) -> Option<ThreadReadState> {
    add_facts(cx, std::slice::from_mut(thread)).await.into_values().next()
}

/// What users added to the thread with an id, before it is opened; nothing for an id that is none.
pub(super) async fn facts_of(cx: &Context, id: &str) -> ShownFacts {
    let Ok(id) = id.parse::<ThreadId>() else { return ShownFacts::default() };
    let facts = organiser(cx).run(move |organiser| organiser.facts(&[id])).await;
    let facts = facts.inspect_err(|error| tracing::warn!(%error, "a thread is shown without its section and project"));
    ShownFacts(facts.ok().and_then(|mut facts| facts.remove(&id)))
}

/// What clients see of a thread's section and project.
#[derive(Default)]
pub(super) struct ShownFacts(Option<Facts>);

impl ShownFacts {
    pub fn show_in(&self, thread: &mut Thread) {
        let Some(facts) = &self.0 else { return };
        thread.project_id.clone_from(&facts.project_id);
        thread.section = facts.section.as_ref().map(|place| place.section.clone());
        thread.section_entered_at = facts.section.as_ref().map(|place| place.entered_at);
    }
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

//! A model provider that says what the test wrote down: the Responses API over HTTP and server-sent events, or
//! another wire.
//!
//! Each call takes the next reply of the script; a call that finds none gets a plain message. Every request is
//! kept. [`items`](message) build what the model says in the words of the Responses API, [`Wire`] in those of
//! any wire, [faults](status) what goes wrong instead.

mod connection;
mod fault;
mod items;
mod recorded;
mod reply;
mod wires;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

pub use fault::*;
pub use items::*;
pub use recorded::RecordedRequest;
pub use reply::Reply;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
pub use wires::{ModelOutput, Wire, chat, event};

use crate::TIMEOUT;
use crate::task::Task;
use crate::watched_value::WatchedValue;

/// What the model says to a call that has no scripted reply.
pub const UNSCRIPTED: &str = "nothing scripted";

/// Enough for any test; a server that opens more has to wait.
const MAX_CONNECTIONS: usize = 512;

/// A running provider on a loopback port; gone when dropped.
pub struct ScriptedModel {
    address: SocketAddr,
    state: Arc<WatchedValue<State>>,
    _listener: Task,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    requests: Vec<RecordedRequest>,
}

impl ScriptedModel {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new(WatchedValue::default());
        let listener = Task::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _listener: listener }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a provider's `base_url` is set to.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds a reply to the script.
    pub fn reply(&self, reply: Reply) -> &Self {
        self.state.update(|state| state.script.push_back(reply));
        self
    }

    /// How many replies nobody has asked for.
    pub fn unused(&self) -> usize {
        self.state.read(|state| state.script.len())
    }

    /// Every request so far, model calls or not.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.read(|state| state.requests.clone())
    }

    /// Every model call so far.
    pub fn calls(&self) -> Vec<RecordedRequest> {
        self.state.read(|state| state.calls().cloned().collect())
    }

    /// The model call with this index, from 0, as soon as it has come in.
    pub async fn call(&self, index: usize) -> RecordedRequest {
        self.wait(&format!("model call {index}"), |state| state.calls().nth(index).cloned()).await
    }

    /// Waits until the caller of this model call has cut the connection before the reply was all written.
    pub async fn abandoned(&self, index: usize) {
        self.wait(&format!("end of model call {index} by its caller"), |state| {
            state.calls().nth(index)?.abandoned.then_some(())
        })
        .await;
    }

    async fn wait<R>(&self, what: &str, look: impl Fn(&State) -> Option<R>) -> R {
        match tokio::time::timeout(TIMEOUT, self.state.until(|state| look(state))).await {
            Ok(found) => found,
            Err(_) => {
                let seen: Vec<_> = self.requests().iter().map(|request| request.path.clone()).collect();
                panic!("no {what} within {TIMEOUT:?}; requests so far: {seen:?}");
            }
        }
    }
}

impl State {
    fn calls(&self) -> impl Iterator<Item = &RecordedRequest> {
        self.requests.iter().filter(|request| request.is_model_call())
    }

    /// Keeps the request and decides about its reply; also gives the request's place.
    fn answer(&mut self, request: RecordedRequest) -> (usize, Reply) {
        let reply = if !request.is_model_call() {
            status(404, json!({ "error": { "message": "not found" } }))
        } else if let Some(reply) = self.script.pop_front() {
            reply
        } else if request.is_compaction() {
            compacted(&[json!({ "type": "compaction", "encrypted_content": UNSCRIPTED })])
        } else {
            request.wire().reply(&[ModelOutput::Text(&[UNSCRIPTED])])
        };
        self.requests.push(request);
        (self.requests.len() - 1, reply)
    }
}

async fn accept(listener: TcpListener, state: Arc<WatchedValue<State>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection::serve(stream, Arc::clone(&state)));
                }
            }
        }
    }
}

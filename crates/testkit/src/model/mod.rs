//! [`ScriptedModel`]: a model provider with scripted replies, for the Responses API over HTTP and server-sent events,
//! or another wire.
//!
//! Each call gets the next reply of the script; a call without one gets a plain message. Every request is recorded.
//! [`items`](message) are output of the Responses API, [`Wire`] makes output for any wire, [faults](status) are
//! errors.

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

/// The message of a call without a scripted reply.
pub const UNSCRIPTED: &str = "nothing scripted";

/// Concurrent connections; further ones wait.
const MAX_CONNECTIONS: usize = 512;

/// A provider on a loopback port, stopped when dropped.
pub struct ScriptedModel {
    address: SocketAddr,
    state: Arc<WatchedValue<ModelState>>,
    _listener: Task,
}

#[derive(Default)]
struct ModelState {
    script: VecDeque<Reply>,
    requests: Vec<RecordedRequest>,
    /// Answers model calls in place of the script.
    responder: Option<Responder>,
    /// Calls that it answered.
    responses: usize,
}

type Responder = Box<dyn Fn(&RecordedRequest) -> Reply + Send>;

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

    /// The `base_url` of the provider.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds a reply to the script.
    pub fn reply(&self, reply: Reply) -> &Self {
        self.state.update(|state| state.script.push_back(reply));
        self
    }

    /// Answers every model call by what it contains, in place of a script. Requests are not recorded then: for long runs
    /// with many turns at once.
    pub fn answer_by(&self, responder: impl Fn(&RecordedRequest) -> Reply + Send + 'static) {
        self.state.update(|state| state.responder = Some(Box::new(responder)));
    }

    /// Number of replies that were not used.
    pub fn unused(&self) -> usize {
        self.state.read(|state| state.script.len())
    }

    /// Removes the replies that were not used.
    pub fn forget_replies(&self) {
        self.state.update(|state| state.script.clear());
    }

    /// Every request so far, model calls or not.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.read(|state| state.requests.clone())
    }

    /// Every model call so far.
    pub fn calls(&self) -> Vec<RecordedRequest> {
        self.state.read(|state| state.calls().cloned().collect())
    }

    /// Waits for the model call with this index, from 0.
    pub async fn call(&self, index: usize) -> RecordedRequest {
        self.wait(&format!("model call {index}"), |state| state.calls().nth(index).cloned()).await
    }

    /// Waits until the client of this model call has disconnected before the end of the reply.
    pub async fn abandoned(&self, index: usize) {
        self.wait(&format!("end of model call {index} by its caller"), |state| {
            state.calls().nth(index)?.abandoned.then_some(())
        })
        .await;
    }

    async fn wait<R>(&self, what: &str, look: impl Fn(&ModelState) -> Option<R>) -> R {
        match tokio::time::timeout(TIMEOUT, self.state.until(|state| look(state))).await {
            Ok(found) => found,
            Err(_) => {
                let seen: Vec<_> = self.requests().iter().map(|request| request.path.clone()).collect();
                panic!("no {what} within {TIMEOUT:?}; requests so far: {seen:?}");
            }
        }
    }
}

impl ModelState {
    fn calls(&self) -> impl Iterator<Item = &RecordedRequest> {
        self.requests.iter().filter(|request| request.is_model_call())
    }

    /// Records the request and returns its index and its reply.
    fn answer(&mut self, request: RecordedRequest) -> (usize, Reply) {
        if let Some(responder) = &self.responder
            && request.is_model_call()
        {
            self.responses += 1;
            // No index of a recorded request.
            return (usize::MAX - self.responses, responder(&request));
        }
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

async fn accept(listener: TcpListener, state: Arc<WatchedValue<ModelState>>) {
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

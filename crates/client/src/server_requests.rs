//! Server requests in progress: each runs in a task of its own, bounded in number, and is aborted when the server
//! withdraws it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use loomd_protocol::{JsonValue, RequestId, RpcError, ServerRequest};
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, Id, JoinSet};
use tracing::{debug, error, warn};

use crate::handler::{DecodedRequest, DynHandler};
use crate::hub::Hub;
use crate::link::Wire;

/// Server requests answered at the same time; more are refused. A server sends one per running tool call.
const MAX_OPEN: usize = 1024;

pub(crate) struct ServerRequests {
    wire: Arc<Wire>,
    hub: Arc<Hub>,
    handler: Arc<dyn DynHandler>,
    /// Dropping the set aborts all tasks.
    tasks: JoinSet<()>,
    by_id: HashMap<RequestId, AbortHandle>,
    by_task: HashMap<Id, RequestId>,
}

impl ServerRequests {
    pub(crate) fn new(wire: Arc<Wire>, hub: Arc<Hub>, handler: Arc<dyn DynHandler>) -> Self {
        Self { wire, hub, handler, tasks: JoinSet::new(), by_id: HashMap::new(), by_task: HashMap::new() }
    }

    /// Has a request answered, unless it is being answered.
    pub(crate) fn start(&mut self, id: RequestId, method: &str, params: Option<&RawValue>, event_id: Option<u128>) {
        if self.by_id.contains_key(&id) {
            // After `thread/resume` a server sends open requests again.
            return debug!(%id, "skipping a request that is being answered");
        }
        if self.tasks.len() >= MAX_OPEN {
            warn!(%id, "refusing a request: too many are being answered");
            return self.wire.refuse(&id, &RpcError::overloaded());
        }
        let value: JsonValue = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let thread_id = value["threadId"].as_str().map(str::to_owned);
        _ = self.hub.is_new(thread_id.as_deref(), event_id);
        let request = match ServerRequest::decode(method, params) {
            Ok(request) => DecodedRequest::Known(request.into()),
            Err(_) => DecodedRequest::Other { method: method.to_owned(), params: value },
        };
        let (wire, handler, request_id) = (Arc::clone(&self.wire), Arc::clone(&self.handler), id.clone());
        let waiting = self.hub.track_request(thread_id);
        let task = self.tasks.spawn(async move {
            let _waiting = waiting;
            let answer = AssertUnwindSafe(handler.answer(request)).catch_unwind().await;
            let answer = answer.unwrap_or_else(|_| {
                error!("a handler panicked");
                Err(RpcError::internal("the client failed to answer"))
            });
            wire.respond(&request_id, answer).await;
        });
        self.by_task.insert(task.id(), id.clone());
        self.by_id.insert(id, task);
    }

    /// Aborts the handler of a request that the server has resolved otherwise.
    pub(crate) fn withdraw(&mut self, id: &RequestId) {
        if let Some(task) = self.by_id.remove(id) {
            task.abort();
        }
    }

    /// Waits until one handler is done; never resolves while there is none.
    pub(crate) async fn next_done(&mut self) {
        let task = match self.tasks.join_next_with_id().await {
            Some(Ok((task, ()))) => task,
            Some(Err(error)) => error.id(),
            None => return std::future::pending().await,
        };
        if let Some(id) = self.by_task.remove(&task)
            && self.by_id.get(&id).is_some_and(|handle| handle.id() == task)
        {
            self.by_id.remove(&id);
        }
    }
}

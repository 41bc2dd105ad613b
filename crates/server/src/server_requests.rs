//! Requests of the server to its clients that wait for an answer: the approvals of threads, under ids of JSON-RPC, and
//! what concerns the whole process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use loomd_agent::Approval;
use loomd_protocol::{JsonValue, RequestId, RpcError, ServerRequest};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::connections::ConnectionId;
use crate::decisions::{decision, encode};

/// The open server requests of all threads, and those that concern no thread.
#[derive(Default)]
pub(crate) struct ServerRequests {
    next: AtomicI64,
    open: Mutex<BTreeMap<i64, Open>>,
}

struct Open {
    json: Bytes,
    /// Only these connections can answer.
    sent_to: Vec<ConnectionId>,
    waiting: Waiting,
}

/// What an answer is for.
enum Waiting {
    Turn(Arc<Approval>),
    Process(oneshot::Sender<Result<JsonValue, RpcError>>),
}

/// A request that concerns no thread. It is withdrawn when this is dropped.
pub(crate) struct ProcessRequest {
    server_requests: Arc<ServerRequests>,
    id: i64,
    pub json: Bytes,
    /// The result, or the error that a client answered with.
    pub answer: oneshot::Receiver<Result<JsonValue, RpcError>>,
}

impl Drop for ProcessRequest {
    fn drop(&mut self) {
        self.server_requests.lock().remove(&self.id);
    }
}

impl ServerRequests {
    /// Opens a request that concerns no thread.
    pub fn open(
        self: &Arc<Self>,
        sent_to: Vec<ConnectionId>,
        request: &ServerRequest,
    ) -> Result<ProcessRequest, serde_json::Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let json = Bytes::from(request.encode(&RequestId::Integer(id))?);
        let (waiting, answer) = oneshot::channel();
        self.lock().insert(id, Open { json: json.clone(), sent_to, waiting: Waiting::Process(waiting) });
        Ok(ProcessRequest { server_requests: Arc::clone(self), id, json, answer })
    }

    /// Opens the request of an approval, or adds connections to those that it was sent to. The message to send them;
    /// `None` when the approval is no longer open.
    pub fn open_approval(&self, approval: &Arc<Approval>, to: &[ConnectionId]) -> Option<Bytes> {
        let mut requests = self.lock();
        if let Some(open) = approval.sent_as.get().and_then(|id| requests.get_mut(id)) {
            let new = to.iter().filter(|connection| !open.sent_to.contains(connection)).copied().collect::<Vec<_>>();
            open.sent_to.extend(new);
            return Some(open.json.clone());
        }
        if !approval.is_open() {
            return None;
        }
        let id = *approval.sent_as.get_or_init(|| self.next.fetch_add(1, Ordering::Relaxed));
        match encode(&approval.request, &RequestId::Integer(id)) {
            Ok(json) => {
                let (json, waiting) = (Bytes::from(json), Waiting::Turn(Arc::clone(approval)));
                requests.insert(id, Open { json: json.clone(), sent_to: to.to_vec(), waiting });
                Some(json)
            }
            Err(error) => {
                tracing::error!(%error, "cannot serialize a server request");
                approval.close();
                None
            }
        }
    }

    /// Forgets the request of an approval that is no longer open.
    pub fn withdraw(&self, approval: &Approval) {
        if let Some(id) = approval.sent_as.get() {
            self.lock().remove(id);
        }
    }

    /// Takes an answer; false when the request was not sent to the connection, or has been answered.
    pub fn answer(&self, connection: ConnectionId, id: &RequestId, answer: Result<&RawValue, RpcError>) -> bool {
        let RequestId::Integer(id) = id else { return false };
        let mut requests = self.lock();
        if !requests.get(id).is_some_and(|open| open.sent_to.contains(&connection)) {
            return false;
        }
        let Some(open) = requests.remove(id) else { return false };
        drop(requests);
        let answer = answer.and_then(|result| {
            serde_json::from_str(result.get()).map_err(|error| RpcError::internal(error.to_string()))
        });
        match open.waiting {
            Waiting::Turn(approval) => approval.decide(decision(&approval.request, answer)).is_ok(),
            Waiting::Process(waiting) => waiting.send(answer).is_ok(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

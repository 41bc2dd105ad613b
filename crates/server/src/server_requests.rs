//! Requests of the server to its clients that wait for an answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use loomd_agent::PendingRequest;
use loomd_protocol::{JsonValue, RequestId, RpcError, ServerRequest};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::connections::ConnectionId;

/// The open server_requests of all threads, and those that concern no thread.
#[derive(Default)]
pub(crate) struct ServerRequests {
    next: AtomicI64,
    open: Mutex<BTreeMap<i64, Open>>,
}

struct Open {
    thread_id: Option<String>,
    json: Bytes,
    /// Only those who were asked can answer.
    asked: Vec<ConnectionId>,
    answer: oneshot::Sender<Result<JsonValue, RpcError>>,
}

/// Takes a question back when it is dropped.
struct Guard {
    server_requests: Arc<ServerRequests>,
    id: i64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.server_requests.lock().remove(&self.id);
    }
}

impl ServerRequests {
    /// Opens a question. The message is what has to be sent to those who are asked.
    pub fn open(
        self: &Arc<Self>,
        thread_id: Option<&str>,
        asked: Vec<ConnectionId>,
        request: &ServerRequest,
    ) -> (PendingRequest, Option<Bytes>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let request_id = RequestId::Integer(id);
        let json = request.encode(&request_id).ok().map(Bytes::from);
        if let Some(json) = &json {
            let open = Open { thread_id: thread_id.map(Into::into), json: json.clone(), asked, answer };
            self.lock().insert(id, open);
        }
        let guard = Guard { server_requests: Arc::clone(self), id };
        (PendingRequest { id: request_id, answer: answered, open: Box::new(guard) }, json)
    }

    /// The open server_requests of a thread, which are put to one more connection.
    pub fn open_for(&self, thread_id: &str, connection: ConnectionId) -> Vec<Bytes> {
        let mut open = self.lock();
        let of_thread = open.values_mut().filter(|question| question.thread_id.as_deref() == Some(thread_id));
        let ask = |question: &mut Open| {
            if !question.asked.contains(&connection) {
                question.asked.push(connection);
            }
            question.json.clone()
        };
        of_thread.map(ask).collect()
    }

    /// Takes an answer; false when the connection was not asked this.
    pub fn answer(&self, connection: ConnectionId, id: &RequestId, answer: Result<&RawValue, RpcError>) -> bool {
        let RequestId::Integer(id) = id else { return false };
        let mut open = self.lock();
        if !open.get(id).is_some_and(|question| question.asked.contains(&connection)) {
            return false;
        }
        let Some(question) = open.remove(id) else { return false };
        drop(open);
        let parsed = answer.and_then(|result| {
            serde_json::from_str(result.get()).map_err(|error| RpcError::internal(error.to_string()))
        });
        _ = question.answer.send(parsed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

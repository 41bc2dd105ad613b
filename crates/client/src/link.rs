//! [`Link`]: one live connection, with its pending requests and the task that receives messages. It ends with its
//! transport; [`reconnect`](crate::reconnect) makes the next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use bytes::Bytes;
use loomd_protocol::{
    Call, Incoming, JsonValue, RequestId, RpcError, ServerNotification, ThreadReplay, ThreadResumeResponse, call,
    encode_error, encode_notification, encode_request, encode_response,
};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, warn};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::handler::DynHandler;
use crate::hub::Hub;
use crate::lenient;
use crate::server_requests::ServerRequests;
use crate::transport::{Disconnect, Transport};

/// Bytes of an unparsable message that are logged.
const MAX_LOGGED: usize = 200;

/// A handle to a connection, which is closed when this is dropped.
pub(crate) struct Link(Arc<Wire>);

/// The response to a request, not yet decoded.
type RawResult = Result<Box<RawValue>, RpcError>;

/// A request without a response so far.
struct PendingRequest {
    /// Whether it is `thread/resume`, whose result is also published as an event.
    resumes: bool,
    answer: oneshot::Sender<RawResult>,
}

/// State shared by the link, the receiver and the handlers of server requests.
pub(crate) struct Wire {
    next_id: AtomicI64,
    pending: Mutex<HashMap<i64, PendingRequest>>,
    /// The outbound queue; `None` once this side has closed.
    outgoing: Mutex<Option<mpsc::Sender<Bytes>>>,
    closed_here: AtomicBool,
    ended: watch::Sender<Option<Arc<Disconnect>>>,
}

impl Link {
    pub(crate) fn start(transport: Transport, hub: Arc<Hub>, handler: Arc<dyn DynHandler>) -> Self {
        let wire = Arc::new(Wire {
            next_id: AtomicI64::new(0),
            pending: Mutex::default(),
            outgoing: Mutex::new(Some(transport.outgoing)),
            closed_here: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        let receiver = Receiver {
            wire: Arc::clone(&wire),
            requests: ServerRequests::new(Arc::clone(&wire), Arc::clone(&hub), handler),
            hub,
            warned: false,
        };
        tokio::spawn(receiver.run(transport.incoming, transport.ended));
        Self(wire)
    }

    /// Sends a request and waits for the response. `Ok(None)` if the connection was closed before the request was
    /// queued.
    pub(crate) async fn request(&self, method: &str, params: &impl Serialize) -> Result<Option<Box<RawValue>>, Error> {
        let wire = &self.0;
        let id = wire.next_id.fetch_add(1, Ordering::Relaxed);
        let message = encode_request(&RequestId::Integer(id), method, params)
            .map_err(|source| Error::Encode { method: method.to_owned(), source })?;
        let (sender, answer) = oneshot::channel();
        wire.pending().insert(id, PendingRequest { resumes: method == call::ThreadResume::METHOD, answer: sender });
        let _guard = PendingGuard { wire, id };
        if !wire.send(message).await {
            return Ok(None);
        }
        match answer.await {
            Ok(Ok(result)) => Ok(Some(result)),
            Ok(Err(error)) => Err(Error::Rpc { method: method.to_owned(), error: error.into() }),
            Err(_) => Err(self.lost().await),
        }
    }

    /// Why the connection ended; waits for its end.
    pub(crate) async fn lost(&self) -> Error {
        self.0.lost().await
    }

    pub(crate) async fn notify(&self, method: &str, params: Option<&JsonValue>) -> Result<(), Error> {
        let message = encode_notification(method, params, None)
            .map_err(|source| Error::Encode { method: method.to_owned(), source })?;
        if self.0.send(message).await { Ok(()) } else { Err(self.lost().await) }
    }

    /// Closes the outbound queue. Messages of the server are still received.
    pub(crate) fn close(&self) {
        self.0.closed_here.store(true, Ordering::Relaxed);
        self.0.outgoing().take();
    }

    pub(crate) fn ended(&self) -> impl Future<Output = Arc<Disconnect>> + Send + use<> {
        let mut ended = self.0.ended.subscribe();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ended) => ended.clone().unwrap_or_default(),
                Err(_) => Arc::default(),
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

impl Wire {
    /// Responds to a server request.
    pub(crate) async fn respond(&self, id: &RequestId, answer: Result<JsonValue, RpcError>) {
        let message = match answer {
            Ok(result) => encode_response(id, &result)
                .unwrap_or_else(|error| encode_error(id, &RpcError::internal(error.to_string()))),
            Err(error) => encode_error(id, &error),
        };
        self.send(message).await;
    }

    /// Responds with an error unless the outbound queue is full.
    pub(crate) fn refuse(&self, id: &RequestId, error: &RpcError) {
        if let Some(outgoing) = &*self.outgoing() {
            _ = outgoing.try_send(encode_error(id, error).into());
        }
    }

    async fn send(&self, message: Vec<u8>) -> bool {
        // `None` once the connection has ended, which happens before pending requests fail.
        let outgoing = self.outgoing().clone();
        match outgoing {
            Some(outgoing) => outgoing.send(message.into()).await.is_ok(),
            None => false,
        }
    }

    async fn lost(&self) -> Error {
        if self.closed_here.load(Ordering::Relaxed) {
            return Error::Closed;
        }
        let mut ended = self.ended.subscribe();
        let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        Error::Disconnected(ended.unwrap_or_default())
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<i64, PendingRequest>> {
        self.pending.lock()
    }

    fn outgoing(&self) -> MutexGuard<'_, Option<mpsc::Sender<Bytes>>> {
        self.outgoing.lock()
    }
}

/// Removes a pending request when its caller stops waiting.
struct PendingGuard<'a> {
    wire: &'a Wire,
    id: i64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.wire.pending().remove(&self.id);
    }
}

/// Receives messages and never waits for a subscriber or a handler.
struct Receiver {
    wire: Arc<Wire>,
    hub: Arc<Hub>,
    requests: ServerRequests,
    /// Whether an unparsable message was logged as a warning.
    warned: bool,
}

impl Receiver {
    async fn run(mut self, mut incoming: mpsc::Receiver<Bytes>, ended: impl Future<Output = Disconnect>) {
        loop {
            tokio::select! {
                message = incoming.recv() => match message {
                    Some(message) => self.receive(&message),
                    None => break,
                },
                () = self.requests.next_done() => {}
            }
        }
        let ended = ended.await;
        debug!(%ended, "connection ended");
        self.wire.outgoing().take();
        self.wire.ended.send_replace(Some(Arc::new(ended)));
        // Dropping the senders fails all pending requests.
        self.wire.pending().clear();
    }

    fn receive(&mut self, message: &[u8]) {
        match Incoming::parse(message) {
            Ok(Incoming::Response { id, result }) => self.complete_request(&id, Ok(result.to_owned())),
            Ok(Incoming::Error { id, error }) => self.complete_request(&id, Err(error)),
            Ok(Incoming::Request { id, method, params, event_id, .. }) => {
                // One that is open is sent again after a reconnect, so it is answered also when it is not new.
                self.requests.start(id, &method, params, event_id.and_then(|id| id.parse().ok()));
            }
            Ok(Incoming::Notification { method, params, event_id }) => {
                let mut event = Event::decode(&method, params);
                event.event_id = event_id.and_then(|id| id.parse().ok());
                if !self.hub.is_new(event.thread_id.as_deref(), event.event_id) {
                    return;
                }
                if let Some(ServerNotification::ServerRequestResolved(resolved)) = event.notification() {
                    self.requests.withdraw(&resolved.request_id);
                }
                self.hub.publish(&event, message.len());
            }
            Err(error) => {
                let text = String::from_utf8_lossy(&message[..message.len().min(MAX_LOGGED)]);
                // Some programs log to stdout. Only the first such line is a warning.
                match std::mem::replace(&mut self.warned, true) {
                    false => warn!(%error, %text, "skipping a malformed message"),
                    true => debug!(%error, %text, "skipping a malformed message"),
                }
            }
        }
    }

    fn complete_request(&self, id: &RequestId, answer: RawResult) {
        let waiting = match id {
            RequestId::Integer(id) => self.wire.pending().remove(id),
            RequestId::String(_) => None,
        };
        let Some(waiting) = waiting else { return debug!("skipping a response without a pending request") };
        if waiting.resumes
            && let Ok(result) = &answer
            && let Ok(resumed) = lenient::decode_result::<ThreadResumeResponse>(result)
        {
            let thread_id = resumed.thread.id.clone();
            if resumed.replay == Some(ThreadReplay::Complete) {
                self.hub.resumed(&thread_id, None);
            } else {
                let event_id = resumed.event_id.as_deref().and_then(|id| id.parse().ok());
                self.hub.resumed(&thread_id, event_id);
                let kind = EventKind::Resumed(resumed.into());
                self.hub.publish(&Event { event_id, ..Event::of_thread(thread_id, kind) }, result.get().len());
            }
        }
        // The caller may have stopped waiting.
        _ = waiting.answer.send(answer);
    }
}

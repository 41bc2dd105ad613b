//! Streamable HTTP: every message is a POST, its answer JSON or a stream of events; a GET opens the stream of the
//! server's own messages.

mod headers;
mod session;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use loomd_model::sse::SseParser;
use loomd_model::{Http, HttpResponse, ResponseBody};
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use headers::HttpOptions;
use session::Session;

use super::WireError;
use super::message::Decoder;
use crate::caller::BoxFuture;
use crate::limits::{ENDING_SESSION, MAX_ERROR_BODY, MAX_MESSAGE, MAX_STREAM_PAUSE, MAX_UNHANDLED};

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Callers have deadlines of their own; this one only ends what was forgotten.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A connection to an HTTP server. All that it does ends when it is dropped.
pub(crate) struct HttpWire {
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Frame>,
}

struct Shared {
    options: HttpOptions,
    http: Arc<Http>,
    session: Session,
    inbox: mpsc::Sender<Frame>,
    /// The requests that are not answered, with what cancels them.
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    closed: CancellationToken,
}

/// What came from the server.
enum Frame {
    Message(Bytes, Option<RequestId>),
    /// An answer that is larger than the limit.
    TooLarge(RequestId),
    /// A request whose stream ended. If it was answered before, this is ignored.
    Unanswered(RequestId),
}

/// What a message is, as far as its delivery depends on it.
enum Kind {
    Initialize(RequestId),
    Request(RequestId),
    Initialized,
    Cancelled(Option<RequestId>),
    Other,
}

impl Kind {
    fn of(message: &ClientJsonRpcMessage) -> Self {
        match message {
            JsonRpcMessage::Request(request) => match request.request {
                ClientRequest::InitializeRequest(_) => Self::Initialize(request.id.clone()),
                _ => Self::Request(request.id.clone()),
            },
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::InitializedNotification(_) => Self::Initialized,
                ClientNotification::CancelledNotification(cancelled) => {
                    Self::Cancelled(cancelled.params.request_id.clone())
                }
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// The request that an answer belongs to.
    fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Initialize(id) | Self::Request(id) => Some(id),
            _ => None,
        }
    }
}

impl HttpWire {
    pub fn new(options: HttpOptions, http: Arc<Http>) -> Self {
        let (sender, inbox) = mpsc::channel(MAX_UNHANDLED);
        let shared = Arc::new(Shared {
            options,
            http,
            session: Session::default(),
            inbox: sender,
            running: Mutex::default(),
            closed: CancellationToken::new(),
        });
        Self { shared, inbox }
    }

    pub fn send(&self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), WireError>> {
        let (shared, kind) = (Arc::clone(&self.shared), Kind::of(&message));
        Box::pin(async move {
            let body = serde_json::to_vec(&message).map_err(|error| WireError::Failed(error.to_string()))?;
            let closed = shared.closed.clone();
            tokio::select! {
                sent = shared.deliver(body.into(), kind) => sent,
                () = closed.cancelled() => Err(WireError::Closed),
            }
        })
    }

    /// Waits for something from the server. Cancel-safe.
    pub(super) async fn read(&mut self, decoder: &mut Decoder) -> bool {
        let Some(frame) = self.inbox.recv().await else { return false };
        let server = &self.shared.options.name;
        match frame {
            Frame::Message(bytes, origin) => decoder.decode(&bytes, origin.as_ref(), server),
            Frame::TooLarge(id) => decoder.too_large(Some(id), server),
            Frame::Unanswered(id) => {
                let error = ErrorData::new(ErrorCode(-32000), "the stream ended before the answer came", None);
                decoder.put(ServerJsonRpcMessage::error(error, Some(id)));
            }
        }
        true
    }

    /// Ends the session.
    pub async fn close(&mut self) {
        self.shared.closed.cancel();
        if let Some(session) = self.shared.session.id() {
            let request = self.shared.request(Method::DELETE, Bytes::new(), Some(&session)).await;
            if let Ok(request) = request {
                let _ = self.shared.http.fetch(request, ENDING_SESSION).await;
            }
        }
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

impl Shared {
    async fn deliver(self: Arc<Self>, body: Bytes, kind: Kind) -> Result<(), WireError> {
        if let Kind::Cancelled(Some(id)) = &kind
            && let Some(running) = self.running.lock().remove(id)
        {
            running.cancel();
        }
        if let Kind::Initialize(_) = &kind {
            self.session.remember_initialize(body.clone());
        }
        let Some(id) = kind.id().cloned() else {
            let response = self.post(body).await?;
            check(response).await?.body.drain();
            if let Kind::Initialized = kind {
                let stream = Arc::clone(&self);
                tokio::spawn(async move {
                    let closed = stream.closed.clone();
                    tokio::select! {
                        () = stream.own_messages() => {}
                        () = closed.cancelled() => {}
                    }
                });
            }
            return Ok(());
        };
        let cancelled = CancellationToken::new();
        self.running.lock().insert(id.clone(), cancelled.clone());
        let answered = tokio::select! {
            answered = Arc::clone(&self).answered(body, kind, cancelled.clone()) => answered,
            () = cancelled.cancelled() => Ok(()),
        };
        if answered.is_err() {
            self.running.lock().remove(&id);
        }
        answered
    }

    /// Sends a request and passes its answer on; a stream goes on in a task of its own.
    async fn answered(self: Arc<Self>, body: Bytes, kind: Kind, cancelled: CancellationToken) -> Result<(), WireError> {
        let Some(id) = kind.id().cloned() else { return Ok(()) };
        let response = check(self.post(body).await?).await?;
        if let Kind::Initialize(_) = kind {
            self.session.opened(&response.headers);
        }
        match content_type(&response) {
            Some(EVENT_STREAM) => {
                tokio::spawn(async move {
                    let closed = self.closed.clone();
                    tokio::select! {
                        _ = self.events(response.body, Some(&id)) => {}
                        () = cancelled.cancelled() => {}
                        () = closed.cancelled() => {}
                    }
                    self.running.lock().remove(&id);
                    self.put(Frame::Unanswered(id)).await;
                });
                return Ok(());
            }
            Some(JSON) => {
                let bytes = response.body.read(MAX_MESSAGE + 1).await.map_err(failed)?;
                let frame = match bytes.len() > MAX_MESSAGE {
                    true => Frame::TooLarge(id.clone()),
                    false => self.message(bytes.into(), Some(&id)),
                };
                self.put(frame).await;
                self.put(Frame::Unanswered(id.clone())).await;
            }
            _ if response.status == StatusCode::ACCEPTED || response.status == StatusCode::NO_CONTENT => {
                // The answer may come on the stream of the server's own messages.
                response.body.drain();
            }
            _ => return Err(unexpected(response).await),
        }
        self.running.lock().remove(&id);
        Ok(())
    }

    /// Posts a message. When the server has forgotten the session, a new one is opened and the message posted again.
    async fn post(&self, body: Bytes) -> Result<HttpResponse, WireError> {
        let session = self.session.id();
        let response = self.authorized(Method::POST, body.clone(), session.as_ref()).await?;
        match session {
            Some(session) if response.status == StatusCode::NOT_FOUND => {
                response.body.drain();
                self.reopen(&session).await?;
                self.authorized(Method::POST, body, self.session.id().as_ref()).await
            }
            _ => Ok(response),
        }
    }

    /// Opens a new session in place of one that the server has forgotten, once for all requests that notice.
    async fn reopen(&self, stale: &HeaderValue) -> Result<(), WireError> {
        let _one = self.session.reopening().await;
        if self.session.id().as_ref() != Some(stale) {
            return Ok(());
        }
        let Some(initialize) = self.session.initialize() else { return Err(WireError::Closed) };
        let response = check(self.authorized(Method::POST, initialize, None).await?).await?;
        self.session.opened(&response.headers);
        // What it says is what it said before, so that it has answered is enough.
        let mut answer = response.body;
        poll_fn(|cx| answer.poll_next(cx)).await.transpose().map_err(failed)?;
        answer.drain();
        let initialized = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let response = self.authorized(Method::POST, initialized, self.session.id().as_ref()).await?;
        check(response).await?.body.drain();
        Ok(())
    }

    /// Sends a request with credentials; once more after a 401, if they can be renewed.
    async fn authorized(
        &self,
        method: Method,
        body: Bytes,
        session: Option<&HeaderValue>,
    ) -> Result<HttpResponse, WireError> {
        let request = self.request(method.clone(), body.clone(), session).await?;
        let response = self.http.send(request, LONGEST).await.map_err(failed)?;
        if response.status != StatusCode::UNAUTHORIZED || !self.options.recover().await {
            return Ok(response);
        }
        response.body.drain();
        let request = self.request(method, body, session).await?;
        self.http.send(request, LONGEST).await.map_err(failed)
    }

    async fn request(
        &self,
        method: Method,
        body: Bytes,
        session: Option<&HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, WireError> {
        let accept = if method == Method::GET { EVENT_STREAM } else { "text/event-stream, application/json" };
        let has_body = method == Method::POST;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.options.uri.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        self.session.add_headers(session, headers);
        self.options.add_headers(headers).await?;
        Ok(request)
    }

    /// Reads the stream of the server's own messages, as long as it offers one.
    async fn own_messages(&self) {
        let mut pause = Duration::from_secs(1);
        loop {
            let opened = self.authorized(Method::GET, Bytes::new(), self.session.id().as_ref()).await;
            let Ok(response) = opened else { return };
            if !response.status.is_success() || content_type(&response) != Some(EVENT_STREAM) {
                return response.body.drain();
            }
            if self.events(response.body, None).await {
                pause = Duration::from_secs(1);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_STREAM_PAUSE);
        }
    }

    /// Passes the events of a stream on until it ends. Returns whether there were any.
    async fn events(&self, mut body: ResponseBody, origin: Option<&RequestId>) -> bool {
        let (mut parser, mut any) = (SseParser::new(MAX_MESSAGE), false);
        while let Some(Ok(piece)) = poll_fn(|cx| body.poll_next(cx)).await {
            parser.push(&piece);
            loop {
                let event = match parser.next() {
                    Some(Ok(event)) => Bytes::copy_from_slice(event),
                    None => break,
                    Some(Err(_)) => {
                        if let Some(id) = origin {
                            self.put(Frame::TooLarge(id.clone())).await;
                        }
                        return any;
                    }
                };
                any = true;
                self.put(self.message(event, origin)).await;
            }
        }
        any
    }

    fn message(&self, bytes: Bytes, origin: Option<&RequestId>) -> Frame {
        self.session.learn_version(&bytes);
        Frame::Message(bytes, origin.cloned())
    }

    async fn put(&self, frame: Frame) {
        // An error means that the connection has ended.
        let _ = self.inbox.send(frame).await;
    }
}

fn failed(error: loomd_model::HttpError) -> WireError {
    WireError::Failed(error.to_string())
}

/// Refuses a response that says that the request failed.
async fn check(response: HttpResponse) -> Result<HttpResponse, WireError> {
    match response.status {
        StatusCode::UNAUTHORIZED => Err(WireError::NotLoggedIn),
        status if status.is_success() => Ok(response),
        _ => Err(unexpected(response).await),
    }
}

async fn unexpected(response: HttpResponse) -> WireError {
    let (status, kind) = (response.status, content_type(&response).unwrap_or("no content type").to_owned());
    let body = response.body.read(MAX_ERROR_BODY).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    WireError::Failed(format!("unexpected answer: HTTP {status}, {kind}: {}", body.trim()))
}

/// The content type of a response, without parameters.
fn content_type(response: &HttpResponse) -> Option<&str> {
    let value = response.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = value.split(';').next().unwrap_or(value).trim();
    [EVENT_STREAM, JSON].into_iter().find(|known| kind.eq_ignore_ascii_case(known)).or(Some(kind))
}

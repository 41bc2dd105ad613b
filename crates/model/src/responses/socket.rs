//! Events that come over a websocket. One connection serves a thread for many calls, and what the provider
//! has seen on it already is not sent again.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::answer::response_headers;
use super::body::{Fields, Form, push};
use super::headers::headers;
use super::reading::Reading;
use super::{ROUTE, Responses, refusal};
use crate::credentials::Bearer;
use crate::event::EventSource;
use crate::http::{HttpError, Stream};
use crate::refusal::Refusal;
use crate::sse::MAX_EVENT;
use crate::{CallHeaders, Events, InputItem, ModelError, ModelEvent, Request, ResponseHeaders, rate_limits};

const BETA: &str = "responses_websockets=2026-02-06";

/// The connection of a thread while no call uses it.
pub(super) type Slot = Arc<Mutex<Option<Live>>>;

pub(super) struct Live {
    socket: WebSocketStream<Stream>,
    url: String,
    /// Who it was opened for.
    bearer: Option<Bearer>,
    last: Option<Last>,
}

/// What the provider knows from the last call on this connection.
struct Last {
    fields: Fields,
    input: Vec<InputItem>,
    answered: Vec<InputItem>,
    response_id: String,
}

/// How a server, or a proxy before it, says that it knows no websockets. What else may be wrong with the call, HTTP
/// will tell.
const NO_WEBSOCKET: [StatusCode; 6] = [
    StatusCode::UPGRADE_REQUIRED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::NOT_IMPLEMENTED,
];

/// Why a connection was not opened.
enum NotOpened {
    Connect(HttpError),
    Handshake(tungstenite::Error),
}

/// Why there is no connection.
pub(super) enum NoSocket {
    /// The provider has none to offer.
    Unavailable,
    Failed(ModelError),
}

impl Responses {
    /// Calls the model over the thread's connection, which is opened if need be.
    pub(super) async fn stream_over_socket(&self, slot: &Slot, request: &Request) -> Result<Events, NoSocket> {
        let (live, headers) = self.live(slot, &request.headers).await?;
        let sent = self.send(live, request, &request.input, true).await.map_err(NoSocket::Failed)?;
        Ok(Events::new(SocketEvents {
            reading: Reading::new(
                sent.live.url.clone(),
                ModelEvent::Headers(headers),
                self.caller.provider.stream_idle_timeout(),
            ),
            sent: Some(sent),
            slot: Arc::clone(slot),
        }))
    }

    /// Tells the provider all but the input before the first turn, so that this need not wait for it.
    pub(super) async fn warm_socket(&self, slot: &Slot, request: &Request) -> Result<(), NoSocket> {
        let (live, headers) = self.live(slot, &request.headers).await?;
        let sent = self.send(live, request, &[], false).await.map_err(NoSocket::Failed)?;
        let first = ModelEvent::Headers(headers);
        let reading = Reading::new(sent.live.url.clone(), first, self.caller.provider.stream_idle_timeout());
        let mut events = Events::new(SocketEvents { reading, sent: Some(sent), slot: Arc::clone(slot) });
        while let Some(event) = events.next().await {
            event.map_err(NoSocket::Failed)?;
        }
        Ok(())
    }

    /// The kept connection if it is still open and its user is still the same, else a new one, with what its opening said.
    async fn live(&self, slot: &Slot, call: &CallHeaders) -> Result<(Live, ResponseHeaders), NoSocket> {
        let mut kept = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut refusals = 0;
        loop {
            let bearer = self.caller.provider.credentials().bearer().await.map_err(NoSocket::Failed)?;
            if let Some(mut live) = kept.take()
                && live.bearer == bearer
                && live.is_open().await
            {
                return Ok((live, ResponseHeaders::default()));
            }
            let (url, query) = self.caller.provider.url(ROUTE, bearer.as_ref());
            let mut headers = headers(&self.caller, call);
            headers.insert(HeaderName::from_static("openai-beta"), HeaderValue::from_static(BETA));
            self.caller.push_credentials(&mut headers, bearer.as_ref());
            let opening = self.open(&url, query, headers);
            let limit = self.caller.provider.websocket_connect_timeout();
            let failed = |cause: String| NoSocket::Failed(ModelError::Connect { url: url.clone(), cause });
            match tokio::time::timeout(limit, opening).await {
                Err(_) => return Err(failed(format!("no websocket within {} ms", limit.as_millis()))),
                Ok(Ok((socket, response))) => {
                    let mut headers = response_headers(response.headers());
                    headers.rate_limits = rate_limits::from_headers(response.headers());
                    headers.rate_limits.retain(|limit| limit.primary.is_some());
                    return Ok((Live { socket, url, bearer, last: None }, headers));
                }
                Ok(Err(NotOpened::Handshake(tungstenite::Error::Http(response)))) => {
                    if NO_WEBSOCKET.contains(&response.status()) {
                        return Err(NoSocket::Unavailable);
                    }
                    if response.status() == StatusCode::UNAUTHORIZED
                        && let Some(bearer) = &bearer
                    {
                        refusals += 1;
                        let recovered = self.caller.provider.credentials().recover(bearer, refusals).await;
                        if recovered.map_err(NoSocket::Failed)? {
                            continue;
                        }
                    }
                    let body = String::from_utf8_lossy(response.body().as_deref().unwrap_or_default());
                    let (status, headers) = (response.status(), response.headers());
                    let refused = Refusal { status, headers, body: &body, url: &url };
                    return Err(NoSocket::Failed(refusal::meaning(&refused)));
                }
                Ok(Err(NotOpened::Handshake(error))) => return Err(failed(error.to_string())),
                Ok(Err(NotOpened::Connect(error))) => {
                    return Err(NoSocket::Failed(ModelError::unanswered(url.clone(), error)));
                }
            }
        }
    }

    async fn open(
        &self,
        url: &str,
        query: &str,
        headers: HeaderMap,
    ) -> Result<(WebSocketStream<Stream>, Response), NotOpened> {
        let url = match url.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}{query}"),
            Some((_, rest)) => format!("ws://{rest}{query}"),
            None => url.into(),
        };
        let mut request = url.into_client_request().map_err(NotOpened::Handshake)?;
        for (name, value) in &headers {
            request.headers_mut().insert(name, value.clone());
        }
        let stream = self.caller.http.connect(request.uri()).await.map_err(NotOpened::Connect)?;
        let config = WebSocketConfig::default().max_message_size(Some(MAX_EVENT)).max_frame_size(Some(MAX_EVENT));
        let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        opened.map_err(NotOpened::Handshake)
    }

    /// Only what the provider does not know yet, if the rest is as it was.
    async fn send(
        &self,
        mut live: Live,
        request: &Request,
        input: &[InputItem],
        generate: bool,
    ) -> Result<Sent, ModelError> {
        let stored = self.caller.provider.stores_items();
        let fields = Fields::new(request, &self.instructions(request), Form { stored, message: true });
        let last = live.last.take().filter(|last| last.fields == fields);
        let known = last.and_then(|last| Some((last.known(input)?, last.response_id)));
        let (mut before, mut after) = (String::new(), String::new());
        if let Some((_, response_id)) = &known {
            before.push(',');
            push(&mut before, "previous_response_id", response_id);
        }
        if !generate {
            after.push_str(r#","generate":false"#);
        }
        if let Some(metadata) = &request.headers.turn_metadata {
            after.push_str(r#","client_metadata":{"#);
            push(&mut after, "x-codex-turn-metadata", metadata);
            after.push('}');
        }
        let tail = &input[known.map_or(0, |(known, _)| known)..];
        let message = Message::text(fields.with(tail, stored, (&before, &after)));
        let limit: Duration = self.caller.provider.stream_idle_timeout();
        match tokio::time::timeout(limit, live.socket.send(message)).await {
            Ok(Ok(())) => Ok(Sent { live, fields, input: input.to_vec(), answered: Vec::new() }),
            Ok(Err(error)) => Err(ModelError::disconnected(error.to_string())),
            Err(_) => Err(ModelError::disconnected("the request could not be sent in time")),
        }
    }
}

impl Live {
    /// Looks at what has come since the last call, which should be nothing but pings.
    async fn is_open(&mut self) -> bool {
        poll_fn(|cx| {
            loop {
                match self.socket.poll_next_unpin(cx) {
                    Poll::Pending => return Poll::Ready(true),
                    Poll::Ready(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                    Poll::Ready(_) => return Poll::Ready(false),
                }
            }
        })
        .await
    }
}

impl Last {
    /// How many items at the start of the input the provider knows. `None` if the input is another one.
    fn known(&self, input: &[InputItem]) -> Option<usize> {
        let known = self.input.iter().chain(&self.answered);
        let count = self.input.len() + self.answered.len();
        (count <= input.len() && known.zip(input).all(|(known, item)| known.json() == item.json())).then_some(count)
    }
}

/// A call that waits for its answer.
struct Sent {
    live: Live,
    fields: Fields,
    input: Vec<InputItem>,
    answered: Vec<InputItem>,
}

struct SocketEvents {
    reading: Reading,
    /// Until the answer is complete.
    sent: Option<Sent>,
    slot: Slot,
}

impl SocketEvents {
    /// Takes note of what the provider knows now. After the last event the connection is free again.
    fn noted(&mut self, event: ModelEvent) -> ModelEvent {
        match &event {
            ModelEvent::ItemDone { item, id, .. } => {
                if let Some(sent) = &mut self.sent {
                    sent.answered.extend(InputItem::with_id(item, id.as_deref()));
                }
            }
            ModelEvent::Completed { response_id, .. } => {
                if let Some(Sent { mut live, fields, input, answered }) = self.sent.take() {
                    live.last = Some(Last { fields, input, answered, response_id: response_id.clone() });
                    *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(live);
                }
            }
            _ => {}
        }
        event
    }

    fn over(&mut self, error: ModelError) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        self.sent = None;
        Poll::Ready(Some(Err(self.reading.end(error))))
    }
}

impl EventSource for SocketEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let event = self.reading.take_first()?;
        Some(Ok(self.noted(event)))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.buffered() {
                return Poll::Ready(Some(event));
            }
            let Some(sent) = self.sent.as_mut().filter(|_| !self.reading.done) else { return Poll::Ready(None) };
            match sent.live.socket.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(Message::Text(text)))) => match self.reading.read(text.as_bytes()) {
                    Some(Ok(event)) => return Poll::Ready(Some(Ok(self.noted(event)))),
                    Some(Err(error)) => return self.over(error),
                    // The connection stays open, so nothing else would end this.
                    None if self.reading.failed() => {
                        return self.over(ModelError::disconnected("response.failed event received"));
                    }
                    None => {}
                },
                Poll::Ready(Some(Ok(Message::Close(_)))) | Poll::Ready(None) => {
                    return self.over(ModelError::disconnected("websocket closed by server before response.completed"));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return self.over(ModelError::disconnected(error.to_string())),
                Poll::Pending => {
                    return self.reading.poll_idle(cx, "websocket").map(|error| {
                        self.sent = None;
                        Some(Err(error))
                    });
                }
            }
        }
    }
}

//! The events of a response over a websocket. One connection serves a thread for many calls, and input that the
//! provider has received on it is not sent again.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::{self, Message};

use super::body::{BodyOptions, Fields, push};
use super::headers::headers;
use super::http_events::response_headers;
use super::stream_state::StreamState;
use super::{ROUTE, Responses, refusal};
use crate::credentials::Bearer;
use crate::event::EventSource;
use crate::http::{WebSocket, WebSocketError};
use crate::refusal::Refusal;
use crate::sse::MAX_EVENT;
use crate::{CallHeaders, Events, InputItem, ModelError, ModelEvent, Request, ResponseHeaders, rate_limits};

const BETA: &str = "responses_websockets=2026-02-06";

/// The connection of a thread while no call uses it.
pub(super) type ConnectionSlot = Arc<Mutex<Option<SocketConnection>>>;

pub(super) struct SocketConnection {
    socket: WebSocket,
    url: String,
    /// The token of the handshake.
    bearer: Option<Bearer>,
    last: Option<LastExchange>,
}

/// What the provider has received and sent in the last call on this connection.
struct LastExchange {
    fields: Fields,
    input: Vec<InputItem>,
    answered: Vec<InputItem>,
    response_id: String,
}

/// Statuses by which a server, or a proxy in front of it, reports that it does not support websockets. If the call
/// itself is at fault, the HTTP request that follows reports it.
const NO_WEBSOCKET: [StatusCode; 6] = [
    StatusCode::UPGRADE_REQUIRED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::NOT_IMPLEMENTED,
];

/// Why a call could not be made over a websocket.
pub(super) enum SocketError {
    /// The provider does not support websockets.
    Unavailable,
    Failed(ModelError),
}

impl Responses {
    /// Calls the model over the thread's connection, which is opened if necessary.
    pub(super) async fn stream_over_socket(
        &self,
        slot: &ConnectionSlot,
        request: &Request,
    ) -> Result<Events, SocketError> {
        let (connection, headers) = self.connection(slot, &request.headers).await?;
        let call = self.send(connection, request, &request.input, true).await.map_err(SocketError::Failed)?;
        Ok(Events::new(SocketEvents {
            state: StreamState::new(
                call.connection.url.clone(),
                ModelEvent::Headers(headers),
                self.caller.provider.stream_idle_timeout(),
            ),
            call: Some(call),
            slot: Arc::clone(slot),
        }))
    }

    /// Sends everything but the input ahead of the first turn, which then need not wait for it.
    pub(super) async fn warm_socket(&self, slot: &ConnectionSlot, request: &Request) -> Result<(), SocketError> {
        let (connection, headers) = self.connection(slot, &request.headers).await?;
        let call = self.send(connection, request, &[], false).await.map_err(SocketError::Failed)?;
        let first = ModelEvent::Headers(headers);
        let state = StreamState::new(call.connection.url.clone(), first, self.caller.provider.stream_idle_timeout());
        let mut events = Events::new(SocketEvents { state, call: Some(call), slot: Arc::clone(slot) });
        while let Some(event) = events.next().await {
            event.map_err(SocketError::Failed)?;
        }
        Ok(())
    }

    /// Returns the idle connection if it is open and its token is current, else a new one with the headers of its
    /// handshake.
    async fn connection(
        &self,
        slot: &ConnectionSlot,
        call: &CallHeaders,
    ) -> Result<(SocketConnection, ResponseHeaders), SocketError> {
        let mut idle = slot.lock().take();
        let mut refusals = 0;
        loop {
            let bearer = self.caller.provider.credentials().bearer().await.map_err(SocketError::Failed)?;
            if let Some(mut connection) = idle.take()
                && connection.bearer == bearer
                && connection.is_open().await
            {
                return Ok((connection, ResponseHeaders::default()));
            }
            let (url, query) = self.caller.provider.url(ROUTE, bearer.as_ref());
            let mut headers = headers(&self.caller, call);
            headers.insert(HeaderName::from_static("openai-beta"), HeaderValue::from_static(BETA));
            self.caller.push_credentials(&mut headers, bearer.as_ref());
            let at = format!("{url}{query}");
            let opening = self.caller.http.open_websocket(&at, headers, MAX_EVENT);
            let limit = self.caller.provider.websocket_connect_timeout();
            let failed = |cause: String| SocketError::Failed(ModelError::Connect { url: url.clone(), cause });
            match tokio::time::timeout(limit, opening).await {
                Err(_) => return Err(failed(format!("no websocket within {} ms", limit.as_millis()))),
                Ok(Ok((socket, response))) => {
                    let mut headers = response_headers(response.headers());
                    headers.rate_limits = rate_limits::from_headers(response.headers());
                    headers.rate_limits.retain(|limit| limit.primary.is_some());
                    return Ok((SocketConnection { socket, url, bearer, last: None }, headers));
                }
                Ok(Err(WebSocketError::Handshake(tungstenite::Error::Http(response)))) => {
                    if NO_WEBSOCKET.contains(&response.status()) {
                        return Err(SocketError::Unavailable);
                    }
                    if response.status() == StatusCode::UNAUTHORIZED
                        && let Some(bearer) = &bearer
                    {
                        refusals += 1;
                        let recovered = self.caller.provider.credentials().recover(bearer, refusals).await;
                        if recovered.map_err(SocketError::Failed)? {
                            continue;
                        }
                    }
                    let body = String::from_utf8_lossy(response.body().as_deref().unwrap_or_default());
                    let (status, headers) = (response.status(), response.headers());
                    let refused = Refusal { status, headers, body: &body, url: &url };
                    return Err(SocketError::Failed(refusal::to_error(&refused)));
                }
                Ok(Err(WebSocketError::Handshake(error))) => return Err(failed(error.to_string())),
                Ok(Err(WebSocketError::Connect(error))) => {
                    return Err(SocketError::Failed(ModelError::unanswered(url.clone(), error)));
                }
            }
        }
    }

    /// Sends a request. Input that the provider knows is left out, provided that the other members are unchanged.
    async fn send(
        &self,
        mut connection: SocketConnection,
        request: &Request,
        input: &[InputItem],
        generate: bool,
    ) -> Result<PendingCall, ModelError> {
        let stored = self.caller.provider.stores_items();
        let fields = Fields::new(request, &self.instructions(request), BodyOptions { stored, message: true });
        let last = connection.last.take().filter(|last| last.fields == fields);
        let known = last.and_then(|last| Some((last.shared_prefix(input)?, last.response_id)));
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
        match tokio::time::timeout(limit, connection.socket.send(message)).await {
            Ok(Ok(())) => Ok(PendingCall { connection, fields, input: input.to_vec(), answered: Vec::new() }),
            Ok(Err(error)) => Err(ModelError::disconnected(error.to_string())),
            Err(_) => Err(ModelError::disconnected("the request could not be sent in time")),
        }
    }
}

impl SocketConnection {
    /// Processes what arrived since the last call, which must be nothing but pings and pongs.
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

impl LastExchange {
    /// Returns how many leading items of the input the provider knows; `None` if the input does not continue the last
    /// exchange.
    fn shared_prefix(&self, input: &[InputItem]) -> Option<usize> {
        let known = self.input.iter().chain(&self.answered);
        let count = self.input.len() + self.answered.len();
        (count <= input.len() && known.zip(input).all(|(known, item)| known.json() == item.json())).then_some(count)
    }
}

/// A call that waits for its response.
struct PendingCall {
    connection: SocketConnection,
    fields: Fields,
    input: Vec<InputItem>,
    answered: Vec<InputItem>,
}

struct SocketEvents {
    state: StreamState,
    /// `None` once the response is complete.
    call: Option<PendingCall>,
    slot: ConnectionSlot,
}

impl SocketEvents {
    /// Records what the provider knows. After the last event the connection becomes idle.
    fn track(&mut self, event: ModelEvent) -> ModelEvent {
        match &event {
            ModelEvent::ItemDone { item, id, .. } => {
                if let Some(call) = &mut self.call {
                    call.answered.extend(InputItem::with_id(item, id.as_deref()));
                }
            }
            ModelEvent::Completed { response_id, .. } => {
                if let Some(PendingCall { mut connection, fields, input, answered }) = self.call.take() {
                    connection.last = Some(LastExchange { fields, input, answered, response_id: response_id.clone() });
                    *self.slot.lock() = Some(connection);
                }
            }
            _ => {}
        }
        event
    }

    fn fail(&mut self, error: ModelError) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        self.call = None;
        Poll::Ready(Some(Err(self.state.end(error))))
    }
}

impl EventSource for SocketEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let event = self.state.take_first()?;
        Some(Ok(self.track(event)))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.buffered() {
                return Poll::Ready(Some(event));
            }
            let Some(call) = self.call.as_mut().filter(|_| !self.state.done) else { return Poll::Ready(None) };
            match call.connection.socket.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(Message::Text(text)))) => match self.state.read(text.as_bytes()) {
                    Some(Ok(event)) => return Poll::Ready(Some(Ok(self.track(event)))),
                    Some(Err(error)) => return self.fail(error),
                    // The connection stays open after a failed response, so the stream is ended here.
                    None if self.state.failed() => {
                        return self.fail(ModelError::disconnected("response.failed event received"));
                    }
                    None => {}
                },
                Poll::Ready(Some(Ok(Message::Close(_)))) | Poll::Ready(None) => {
                    return self.fail(ModelError::disconnected("websocket closed by server before response.completed"));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return self.fail(ModelError::disconnected(error.to_string())),
                Poll::Pending => {
                    return self.state.poll_idle(cx, "websocket").map(|error| {
                        self.call = None;
                        Some(Err(error))
                    });
                }
            }
        }
    }
}

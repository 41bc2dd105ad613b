//! The Responses API: over HTTP with server-sent events, and over a websocket where the provider supports it.

mod body;
mod decode;
mod failure;
mod headers;
mod http_events;
mod refusal;
mod socket;
mod stream_state;
mod usage_limit;
mod whole;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use loomd_protocol::ResponseItem;
use parking_lot::Mutex;
use serde::Deserialize;

use self::body::{BodyOptions, Fields};
pub(crate) use self::decode::{DecodedEvent, decode};
use self::headers::headers;
use self::http_events::HttpEvents;
use self::socket::{ConnectionSlot, SocketError};
use crate::call::{Call, Caller, trace_headers};
use crate::sse::MAX_EVENT;
use crate::{CallHeaders, Events, InputItem, ModelError, Request, TokenUsage};

const ROUTE: &str = "/responses";

/// The Responses API as one thread calls it.
pub(crate) struct Responses {
    caller: Caller,
    /// `None` without websocket support, or once the websocket was given up.
    socket: Option<ConnectionSlot>,
    /// The last instructions and their JSON, cached because they are long and rarely change.
    instructions: Mutex<Option<(Arc<str>, Arc<str>)>>,
}

impl Responses {
    pub fn new(caller: Caller) -> Self {
        let socket = caller.provider.websockets().then(ConnectionSlot::default);
        Self { caller, socket, instructions: Mutex::default() }
    }

    pub async fn stream(&mut self, request: &Request) -> Result<Events, ModelError> {
        let request = &*without_foreign_reasoning(request);
        if let Some(slot) = &self.socket {
            match self.stream_over_socket(slot, request).await {
                Ok(events) => return Ok(events),
                Err(SocketError::Failed(error)) => return Err(error),
                Err(SocketError::Unavailable) => self.socket = None,
            }
        }
        let stored = self.caller.provider.stores_items();
        let fields = Fields::new(request, &self.instructions(request), BodyOptions { stored, message: false });
        let body = fields.with(&request.input, stored, ("", "")).into();
        let called = self.caller.call(&self.post(ROUTE, "text/event-stream", &request.headers, body)).await?;
        Ok(Events::new(HttpEvents::new(called, self.caller.provider.stream_idle_timeout())))
    }

    pub async fn compact(&self, request: &Request) -> Result<(Vec<ResponseItem>, Option<TokenUsage>), ModelError> {
        #[derive(Deserialize)]
        struct Compacted {
            output: Vec<ResponseItem>,
            usage: Option<decode::Usage>,
        }
        let request = &*without_foreign_reasoning(request);
        let body =
            Fields::compaction(request).with(&request.input, self.caller.provider.stores_items(), ("", "")).into();
        let call = self.post("/responses/compact", "application/json", &request.headers, body);
        let called = self.caller.call(&call).await?;
        let state = called.answer.body.read(MAX_EVENT);
        let body = match tokio::time::timeout(self.caller.provider.stream_idle_timeout(), state).await {
            Err(_) => return Err(ModelError::disconnected("idle timeout waiting for the response")),
            Ok(body) => body.map_err(|error| ModelError::unanswered(called.url, error))?,
        };
        let compacted: Compacted =
            serde_json::from_slice(&body).map_err(|error| ModelError::disconnected(error.to_string()))?;
        Ok((compacted.output, compacted.usage.map(Into::into)))
    }

    fn post(&self, route: &'static str, accept: &'static str, call: &CallHeaders, body: Bytes) -> Call {
        let (method, mut headers) = (Method::POST, headers(&self.caller, call));
        headers.extend(trace_headers(call));
        Call { method, route, accept, headers, body, to_error: refusal::to_error }
    }

    pub async fn warm_up(&mut self, request: &Request) {
        let Some(slot) = &self.socket else { return };
        match self.warm_socket(slot, request).await {
            Ok(()) => {}
            Err(SocketError::Unavailable) => self.socket = None,
            // The first call meets the same problem and reports it.
            Err(SocketError::Failed(error)) => tracing::debug!(%error, "websocket warm-up failed"),
        }
    }

    pub fn fall_back_to_http(&mut self) -> bool {
        self.socket.take().is_some()
    }

    fn instructions(&self, request: &Request) -> Arc<str> {
        let mut last = self.instructions.lock();
        match &*last {
            Some((text, json)) if *text == request.instructions => Arc::clone(json),
            _ => {
                let json: Arc<str> = serde_json::to_string(&*request.instructions).unwrap_or_default().into();
                *last = Some((Arc::clone(&request.instructions), Arc::clone(&json)));
                json
            }
        }
    }
}

/// Returns the request without reasoning that only other wires can take back.
fn without_foreign_reasoning(request: &Request) -> Cow<'_, Request> {
    if !request.input.iter().any(InputItem::is_foreign) {
        return Cow::Borrowed(request);
    }
    let input = request.input.iter().filter(|item| !item.is_foreign()).cloned().collect();
    Cow::Owned(Request { input, ..request.clone() })
}

//! The events of a response over HTTP.

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::HeaderMap;
use loomd_protocol::JsonValue;

use super::stream_state::StreamState;
use super::whole::to_events;
use crate::call::CallResponse;
use crate::event::EventSource;
use crate::framing::{Framing, Remainder, describe};
use crate::http::ResponseBody;
use crate::{ModelError, ModelEvent, ResponseHeaders, rate_limits};

/// The event source of one response.
pub(super) struct HttpEvents {
    state: StreamState,
    framing: Framing,
    url: String,
    /// `None` once the body or this stream has ended.
    body: Option<ResponseBody>,
    /// The remaining events of a non-streaming response.
    whole: VecDeque<JsonValue>,
}

impl HttpEvents {
    pub fn new(CallResponse { answer, url }: CallResponse, idle_timeout: Duration) -> Self {
        let first = ModelEvent::Headers(ResponseHeaders {
            rate_limits: rate_limits::from_headers(&answer.headers),
            ..response_headers(&answer.headers)
        });
        Self {
            state: StreamState::new(url.clone(), first, idle_timeout),
            framing: Framing::default(),
            url,
            body: Some(answer.body),
            whole: VecDeque::new(),
        }
    }

    /// Handles the end of the body, which is regular if `whole`. Returns the last event, unless the body was a response
    /// of its own, whose events are then in `self.whole`.
    fn end(&mut self, whole: bool) -> Option<Result<ModelEvent, ModelError>> {
        self.body = None;
        let error = match self.framing.finish() {
            Remainder::Event(data) => match self.state.read(data.as_bytes()) {
                Some(event) => return Some(event),
                None => closed(),
            },
            Remainder::Whole(body) if whole => {
                self.whole = serde_json::from_str(&body).map(to_events).unwrap_or_default().into();
                if !self.whole.is_empty() {
                    return None;
                }
                ModelError::NotAStream { found: describe(&body), url: self.url.clone() }
            }
            Remainder::Text(text) if whole => ModelError::NotAStream { found: describe(&text), url: self.url.clone() },
            Remainder::Nothing | Remainder::Whole(_) | Remainder::Text(_) => closed(),
        };
        Some(Err(self.state.end(error)))
    }
}

fn closed() -> ModelError {
    ModelError::disconnected("stream closed before response.completed")
}

impl EventSource for HttpEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if let Some(event) = self.state.take_first() {
            return Some(Ok(event));
        }
        while !self.state.done {
            if let Some(event) = self.whole.pop_front() {
                match self.state.read(event.to_string().as_bytes()) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            match self.framing.next()? {
                Ok(data) => {
                    if let Some(event) = self.state.read(data) {
                        return Some(event);
                    }
                }
                Err(error) => return Some(Err(self.state.end(error.into()))),
            }
        }
        None
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.buffered() {
                return Poll::Ready(Some(event));
            }
            if self.state.done {
                return Poll::Ready(None);
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Some(Err(self.state.end(closed())))) };
            let ended = match body.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.framing.push(&bytes);
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "response body broke off");
                    self.end(false)
                }
                Poll::Ready(None) => self.end(true),
                Poll::Pending => {
                    return self.state.poll_idle(cx, "SSE").map(|error| {
                        self.body = None;
                        Some(Err(error))
                    });
                }
            };
            if let Some(event) = ended {
                return Poll::Ready(Some(event));
            }
        }
    }
}

/// Most callers stop at the last event, before the end of the body has been read.
impl Drop for HttpEvents {
    fn drop(&mut self) {
        if self.state.done
            && let Some(body) = self.body.take()
        {
            body.drain();
        }
    }
}

/// Reads all response headers but the rate limits.
pub(super) fn response_headers(headers: &HeaderMap) -> ResponseHeaders {
    let text = |name: &str| headers.get(name)?.to_str().ok().filter(|text| !text.is_empty()).map(str::to_owned);
    ResponseHeaders {
        model: text("openai-model"),
        turn_state: text("x-codex-turn-state"),
        reasoning_included: headers.contains_key("x-reasoning-included"),
        models_etag: text("x-models-etag"),
        rate_limits: Vec::new(),
    }
}

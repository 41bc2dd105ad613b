//! Events that come as the body of an HTTP answer.

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::HeaderMap;
use loomd_protocol::JsonValue;

use super::reading::Reading;
use super::whole::events_of;
use crate::call::Called;
use crate::event::EventSource;
use crate::framing::{Framing, Rest, describe};
use crate::http::Body;
use crate::{ModelError, ModelEvent, ResponseHeaders, rate_limits};

/// A successful answer.
pub(super) struct AnswerEvents {
    reading: Reading,
    framing: Framing,
    url: String,
    /// Until its end or ours.
    body: Option<Body>,
    /// The events of an answer that came whole.
    whole: VecDeque<JsonValue>,
}

impl AnswerEvents {
    pub fn new(Called { answer, url }: Called, idle_timeout: Duration) -> Self {
        let first = ModelEvent::Headers(ResponseHeaders {
            rate_limits: rate_limits::from_headers(&answer.headers),
            ..response_headers(&answer.headers)
        });
        Self {
            reading: Reading::new(url.clone(), first, idle_timeout),
            framing: Framing::default(),
            url,
            body: Some(answer.body),
            whole: VecDeque::new(),
        }
    }

    /// The body has ended; `whole`: as it should. Gives the event that it ends with, unless there are more.
    fn end(&mut self, whole: bool) -> Option<Result<ModelEvent, ModelError>> {
        self.body = None;
        let error = match self.framing.finish() {
            Rest::Event(data) => match self.reading.read(data.as_bytes()) {
                Some(event) => return Some(event),
                None => closed(),
            },
            Rest::Whole(body) if whole => {
                self.whole = serde_json::from_str(&body).map(events_of).unwrap_or_default().into();
                if !self.whole.is_empty() {
                    return None;
                }
                ModelError::NotAStream { found: describe(&body), url: self.url.clone() }
            }
            Rest::Text(text) if whole => ModelError::NotAStream { found: describe(&text), url: self.url.clone() },
            Rest::Nothing | Rest::Whole(_) | Rest::Text(_) => closed(),
        };
        Some(Err(self.reading.end(error)))
    }
}

fn closed() -> ModelError {
    ModelError::disconnected("stream closed before response.completed")
}

impl EventSource for AnswerEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if let Some(event) = self.reading.take_first() {
            return Some(Ok(event));
        }
        while !self.reading.done {
            if let Some(event) = self.whole.pop_front() {
                match self.reading.read(event.to_string().as_bytes()) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            match self.framing.next()? {
                Ok(data) => {
                    if let Some(event) = self.reading.read(data) {
                        return Some(event);
                    }
                }
                Err(error) => return Some(Err(self.reading.end(error.into()))),
            }
        }
        None
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.buffered() {
                return Poll::Ready(Some(event));
            }
            if self.reading.done {
                return Poll::Ready(None);
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Some(Err(self.reading.end(closed())))) };
            let ended = match body.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.framing.push(&bytes);
                    continue;
                }
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "an answer broke off");
                    self.end(false)
                }
                Poll::Ready(None) => self.end(true),
                Poll::Pending => {
                    return self.reading.poll_idle(cx, "SSE").map(|error| {
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

/// Most callers stop at the last event, before the connection has come to the end of the body.
impl Drop for AnswerEvents {
    fn drop(&mut self) {
        if self.reading.done
            && let Some(body) = self.body.take()
        {
            body.finish();
        }
    }
}

/// All but the rate limits.
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

//! Events that come as the body of an HTTP answer.

use std::task::{Context, Poll};
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::failure::stray_error;
use super::reading::Reading;
use crate::event::EventSource;
use crate::http::{Answer, Body};
use crate::sse::SseParser;
use crate::{ModelError, ModelEvent, ResponseHeaders, rate_limits};

/// How much is kept of a body that is no stream of events, to find an error in it.
const MAX_STRAY: usize = 64 * 1024;

/// A successful answer.
pub(super) struct AnswerEvents {
    reading: Reading,
    parser: SseParser,
    /// Until its end or ours.
    body: Option<Body>,
    /// The beginning of a body that says that it is no stream of events.
    stray: Option<Vec<u8>>,
}

impl AnswerEvents {
    pub fn new(answer: Answer, url: String, idle_timeout: Duration) -> Self {
        let first = ModelEvent::Headers(ResponseHeaders {
            rate_limits: rate_limits::from_headers(&answer.headers),
            ..response_headers(&answer.headers)
        });
        let json =
            answer.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        Self {
            reading: Reading::new(url, first, idle_timeout),
            parser: SseParser::default(),
            body: Some(answer.body),
            stray: json.then(Vec::new),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.parser.push(bytes);
        if let Some(stray) = &mut self.stray {
            stray.extend_from_slice(&bytes[..bytes.len().min(MAX_STRAY - stray.len())]);
        }
    }

    /// The body has ended.
    fn end(&mut self) -> Result<ModelEvent, ModelError> {
        self.body = None;
        if let Some(event) = self.parser.finish().and_then(|data| self.reading.read(data)) {
            return event;
        }
        let stray = self.stray.take().and_then(|stray| stray_error(&String::from_utf8_lossy(&stray)));
        let closed = || ModelError::disconnected("stream closed before response.completed");
        Err(self.reading.end(stray.unwrap_or_else(closed)))
    }
}

impl EventSource for AnswerEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if let Some(event) = self.reading.take_first() {
            return Some(Ok(event));
        }
        while !self.reading.done {
            match self.parser.next()? {
                Ok(data) => {
                    if let Some(event) = self.reading.read(data) {
                        return Some(event);
                    }
                }
                Err(error) => return Some(Err(self.reading.end(ModelError::disconnected(error.to_string())))),
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
            let Some(body) = &mut self.body else { return Poll::Ready(Some(self.end())) };
            match body.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.push(&bytes),
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "an answer broke off");
                    return Poll::Ready(Some(self.end()));
                }
                Poll::Ready(None) => return Poll::Ready(Some(self.end())),
                Poll::Pending => {
                    return self.reading.poll_idle(cx, "SSE").map(|error| {
                        self.body = None;
                        Some(Err(error))
                    });
                }
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

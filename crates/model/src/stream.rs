//! Events that come as the body of an HTTP answer, for wires whose answer is a plain stream of server-sent
//! events from the first piece to the last.

use std::task::{Context, Poll};
use std::time::Duration;

use hyper::header::CONTENT_TYPE;

use crate::compose::Composer;
use crate::event::EventSource;
use crate::http::{Answer, Body};
use crate::idle::Idle;
use crate::sse::SseParser;
use crate::{ModelError, ModelEvent, ResponseHeaders};

/// How much is kept of a body that is no stream of events, to find an error in it.
const MAX_STRAY: usize = 64 * 1024;

/// Makes sense of one wire's events.
pub(crate) trait Decode: Send {
    /// Reads the data of an event. An error ends the stream.
    fn read(&mut self, data: &str, to: &mut Composer) -> Result<(), ModelError>;

    /// The body has ended before the last event.
    fn end(&mut self, to: &mut Composer) -> Result<(), ModelError>;

    /// The error in a body that should have been a stream.
    fn stray(&self, body: &str) -> Option<ModelError>;
}

pub(crate) struct StreamEvents<D> {
    decode: D,
    composer: Composer,
    parser: SseParser,
    /// Told first.
    headers: Option<ModelEvent>,
    /// Until its end or ours.
    body: Option<Body>,
    /// The beginning of a body that says that it is no stream of events.
    stray: Option<Vec<u8>>,
    idle: Idle,
    /// Told when all that came before it has been told.
    failure: Option<ModelError>,
    /// The last event has been told.
    done: bool,
}

impl<D: Decode> StreamEvents<D> {
    pub fn new(decode: D, answer: Answer, idle_timeout: Duration) -> Self {
        let json =
            answer.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        Self {
            decode,
            composer: Composer::default(),
            parser: SseParser::default(),
            headers: Some(ModelEvent::Headers(ResponseHeaders::default())),
            body: Some(answer.body),
            stray: json.then(Vec::new),
            idle: Idle::new(idle_timeout),
            failure: None,
            done: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.idle.heard();
        self.parser.push(bytes);
        if let Some(stray) = &mut self.stray {
            stray.extend_from_slice(&bytes[..bytes.len().min(MAX_STRAY - stray.len())]);
        }
    }

    /// The body has ended.
    fn end(&mut self) {
        self.body = None;
        let stray = self.stray.take();
        let found = stray.and_then(|stray| self.decode.stray(&String::from_utf8_lossy(&stray)));
        let last = self.parser.finish().map(|data| String::from_utf8_lossy(data).into_owned());
        let read = last.map_or(Ok(()), |data| self.decode.read(&data, &mut self.composer));
        self.failure =
            read.and_then(|()| found.map_or(Ok(()), Err)).and_then(|()| self.decode.end(&mut self.composer)).err();
    }

    /// The next event that is ready, or the failure behind them.
    fn ready(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if let Some(event) = self.headers.take().or_else(|| self.composer.take()) {
            self.done |= matches!(event, ModelEvent::Completed { .. });
            return Some(Ok(event));
        }
        let failure = self.failure.take()?;
        self.done = true;
        self.body = None;
        Some(Err(failure))
    }
}

impl<D: Decode> EventSource for StreamEvents<D> {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        while !self.done {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            match self.parser.next()? {
                Ok(data) => {
                    if let Ok(data) = std::str::from_utf8(data) {
                        self.failure = self.decode.read(data, &mut self.composer).err();
                    }
                }
                Err(error) => self.failure = Some(ModelError::disconnected(error.to_string())),
            }
        }
        None
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.buffered() {
                return Poll::Ready(Some(event));
            }
            if self.done {
                return Poll::Ready(None);
            }
            let Some(body) = &mut self.body else {
                // A decoder that neither completes nor fails would leave its reader waiting.
                self.failure = Some(ModelError::disconnected("the answer stopped short"));
                continue;
            };
            match body.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.push(&bytes),
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "an answer broke off");
                    self.end();
                }
                Poll::Ready(None) => self.end(),
                Poll::Pending => match self.idle.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.failure = Some(ModelError::disconnected("idle timeout waiting for SSE")),
                },
            }
        }
    }
}

/// Most callers stop at the last event, before the connection has come to the end of the body.
impl<D> Drop for StreamEvents<D> {
    fn drop(&mut self) {
        if self.done
            && let Some(body) = self.body.take()
        {
            body.finish();
        }
    }
}

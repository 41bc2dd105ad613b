//! Events that come as the body of an HTTP answer, for wires whose answer is a plain stream of server-sent
//! events from the first piece to the last.

use std::task::{Context, Poll};
use std::time::Duration;

use loomd_protocol::JsonValue;

use crate::call::CallResponse;
use crate::compose::Composer;
use crate::event::EventSource;
use crate::framing::{Framing, Remainder, describe};
use crate::http::ResponseBody;
use crate::idle::Idle;
use crate::{ModelError, ModelEvent, ResponseHeaders};

/// Makes sense of one wire's events.
pub(crate) trait Decode: Send {
    /// Reads the data of an event. An error ends the stream.
    fn read(&mut self, data: &str, to: &mut Composer) -> Result<(), ModelError>;

    /// The body has ended before the last event.
    fn end(&mut self, to: &mut Composer) -> Result<(), ModelError>;

    /// The events that would have said the same as a body that is no stream; none if it is no answer either.
    fn to_events(&self, body: JsonValue) -> Vec<JsonValue>;
}

pub(crate) struct StreamEvents<D> {
    decode: D,
    composer: Composer,
    framing: Framing,
    url: String,
    /// Told first.
    headers: Option<ModelEvent>,
    /// Until its end or ours.
    body: Option<ResponseBody>,
    idle: Idle,
    /// Told when all that came before it has been told.
    failure: Option<ModelError>,
    /// The last event has been told.
    done: bool,
}

impl<D: Decode> StreamEvents<D> {
    pub fn new(decode: D, called: CallResponse, idle_timeout: Duration) -> Self {
        Self {
            decode,
            composer: Composer::default(),
            framing: Framing::default(),
            url: called.url,
            headers: Some(ModelEvent::Headers(ResponseHeaders::default())),
            body: Some(called.answer.body),
            idle: Idle::new(idle_timeout),
            failure: None,
            done: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.idle.reset();
        self.framing.push(bytes);
    }

    /// The body has ended. `whole`: as it should.
    fn end(&mut self, whole: bool) {
        self.body = None;
        let read = match self.framing.finish() {
            Remainder::Nothing => Ok(()),
            Remainder::Event(data) => self.decode.read(&data, &mut self.composer),
            Remainder::Whole(_) | Remainder::Text(_) if !whole => Ok(()),
            Remainder::Whole(body) => self.read_whole(&body),
            Remainder::Text(text) => Err(self.not_a_stream(&text)),
        };
        self.failure = read.and_then(|()| self.decode.end(&mut self.composer)).err();
    }

    fn read_whole(&mut self, body: &str) -> Result<(), ModelError> {
        let events = serde_json::from_str(body).map(|body| self.decode.to_events(body)).unwrap_or_default();
        if events.is_empty() {
            return Err(self.not_a_stream(body));
        }
        events.into_iter().try_for_each(|event| self.decode.read(&event.to_string(), &mut self.composer))
    }

    fn not_a_stream(&self, body: &str) -> ModelError {
        ModelError::NotAStream { found: describe(body), url: self.url.clone() }
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
            match self.framing.next()? {
                Ok(data) => {
                    if let Ok(data) = std::str::from_utf8(data) {
                        self.failure = self.decode.read(data, &mut self.composer).err();
                    }
                }
                Err(error) => self.failure = Some(error.into()),
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
                    self.end(false);
                }
                Poll::Ready(None) => self.end(true),
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
            body.drain();
        }
    }
}

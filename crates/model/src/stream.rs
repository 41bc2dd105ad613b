//! The events of an HTTP response, for wires that consist of server-sent events from first to last.

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

/// The decoder of one wire.
pub(crate) trait Decode: Send {
    /// Decodes the data of an event. An error ends the stream.
    fn read(&mut self, data: &str, to: &mut Composer) -> Result<(), ModelError>;

    /// Called at the end of a body without a last event.
    fn end(&mut self, to: &mut Composer) -> Result<(), ModelError>;

    /// Returns the events equivalent to a non-streaming body; none if it is not a response.
    fn to_events(&self, body: JsonValue) -> Vec<JsonValue>;
}

pub(crate) struct StreamEvents<D> {
    decode: D,
    composer: Composer,
    framing: Framing,
    url: String,
    /// The first event.
    headers: Option<ModelEvent>,
    /// `None` once the body or this stream has ended.
    body: Option<ResponseBody>,
    idle: Idle,
    /// Emitted after all events that precede it.
    failure: Option<ModelError>,
    /// The last event was emitted.
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

    /// Handles the end of the body, which is regular if `whole`.
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

    /// Returns the next decoded event, or the failure behind them.
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
                // Guards against a decoder that neither completes nor fails.
                self.failure = Some(ModelError::disconnected("the response ended without a last event"));
                continue;
            };
            match body.poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.push(&bytes),
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "response body broke off");
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

/// Most callers stop at the last event, before the end of the body has been read.
impl<D> Drop for StreamEvents<D> {
    fn drop(&mut self) {
        if self.done
            && let Some(body) = self.body.take()
        {
            body.drain();
        }
    }
}

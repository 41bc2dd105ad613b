//! The state of reading a response, over HTTP or a websocket: a failure that may still be followed by
//! `response.completed`, and the idle timeout.

use std::task::{Context, Poll};
use std::time::Duration;

use super::decode::{DecodedEvent, decode, server_model};
use crate::idle::Idle;
use crate::{ModelError, ModelEvent};

/// How long a stream may stay open after `response.failed`, in case `response.completed` follows.
const FAILURE_GRACE: Duration = Duration::from_secs(2);

pub(super) struct StreamState {
    url: String,
    /// An event to emit before the next one of the stream.
    first: Option<ModelEvent>,
    failure: Option<ModelError>,
    idle: Idle,
    /// No event follows.
    pub done: bool,
}

impl StreamState {
    pub fn new(url: String, first: ModelEvent, idle_timeout: Duration) -> Self {
        Self { url, first: Some(first), failure: None, idle: Idle::new(idle_timeout), done: false }
    }

    /// Takes the event to emit before the next one of the stream.
    pub fn take_first(&mut self) -> Option<ModelEvent> {
        self.first.take()
    }

    /// Decodes an event; returns what to emit, if anything.
    pub fn read(&mut self, data: &[u8]) -> Option<Result<ModelEvent, ModelError>> {
        self.idle.reset();
        let json = std::str::from_utf8(data).ok()?;
        let event = match decode(json, &self.url) {
            DecodedEvent::Event(event) => Some(event),
            DecodedEvent::Failed(error) => {
                self.idle.shorten(FAILURE_GRACE);
                self.failure = Some(error);
                None
            }
            DecodedEvent::Refused(error) => {
                self.done = true;
                return Some(Err(error));
            }
            DecodedEvent::Nothing => None,
        };
        if matches!(&event, Some(ModelEvent::TextDelta { .. })) {
            return event.map(Ok);
        }
        self.done |= matches!(&event, Some(ModelEvent::Completed { .. }));
        match server_model(json) {
            None => event.map(Ok),
            Some(model) => {
                self.first = event;
                Some(Ok(ModelEvent::ServerModel(model)))
            }
        }
    }

    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the stream. Returns the reported failure, or else `otherwise`.
    pub fn end(&mut self, otherwise: ModelError) -> ModelError {
        self.done = true;
        self.failure.take().unwrap_or(otherwise)
    }

    /// Ready with an error once the stream has been idle for too long.
    pub fn poll_idle(&mut self, cx: &mut Context<'_>, source: &str) -> Poll<ModelError> {
        self.idle.poll(cx).map(|()| self.end(ModelError::disconnected(format!("idle timeout waiting for {source}"))))
    }
}

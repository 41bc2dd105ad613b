//! What reading an answer has to remember, however its events arrive: a failure that may yet be overtaken,
//! and how long it has been quiet.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::decode::{Decoded, decode, server_model};
use crate::{ModelError, ModelEvent};

/// How long a stream may stay open after it said that the response failed. `response.completed` could come.
const FAILURE_GRACE: Duration = Duration::from_secs(2);

pub(super) struct Reading {
    url: String,
    /// What comes before the next event of the stream.
    first: Option<ModelEvent>,
    failure: Option<ModelError>,
    idle: Idle,
    /// There is no event after this.
    pub done: bool,
}

impl Reading {
    pub fn new(url: String, first: ModelEvent, idle_timeout: Duration) -> Self {
        let idle = Idle { limit: idle_timeout, last: Instant::now(), sleep: None };
        Self { url, first: Some(first), failure: None, idle, done: false }
    }

    /// What was put before the stream's next event.
    pub fn take_first(&mut self) -> Option<ModelEvent> {
        self.first.take()
    }

    /// Takes note of an event; gives what the caller is told about it.
    pub fn read(&mut self, data: &[u8]) -> Option<Result<ModelEvent, ModelError>> {
        self.idle.last = Instant::now();
        let json = std::str::from_utf8(data).ok()?;
        let event = match decode(json, &self.url) {
            Decoded::Event(event) => Some(event),
            Decoded::Failed(error) => {
                self.idle.limit = self.idle.limit.min(FAILURE_GRACE);
                self.failure = Some(error);
                None
            }
            Decoded::Refused(error) => {
                self.done = true;
                return Some(Err(error));
            }
            Decoded::Nothing => None,
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

    /// The stream is over, and this is why it is no success.
    pub fn end(&mut self, otherwise: ModelError) -> ModelError {
        self.done = true;
        self.failure.take().unwrap_or(otherwise)
    }

    /// Whether it has been quiet for too long.
    pub fn poll_idle(&mut self, cx: &mut Context<'_>, source: &str) -> Poll<ModelError> {
        self.idle.poll(cx).map(|()| self.end(ModelError::disconnected(format!("idle timeout waiting for {source}"))))
    }
}

/// A timer that is set rarely: an event only notes its time, and the timer finds out when it rings.
struct Idle {
    limit: Duration,
    last: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.last + self.limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if sleep.deadline() > end {
            sleep.as_mut().reset(end);
        }
        loop {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(end);
        }
    }
}

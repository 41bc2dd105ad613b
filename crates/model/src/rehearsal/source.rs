//! A source of prepared events, each with a delay.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::event::EventSource;
use crate::{ModelError, ModelEvent};

/// An event, and the delay before it.
pub(super) type TimedEvent = (Duration, Result<ModelEvent, ModelError>);

pub(super) struct ScriptedEvents {
    events: VecDeque<TimedEvent>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl ScriptedEvents {
    pub fn new(events: Vec<TimedEvent>) -> Self {
        Self { events: events.into(), wait: None }
    }

    fn take(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.wait = None;
        let (_, event) = self.events.pop_front()?;
        if event.is_err() || matches!(event, Ok(ModelEvent::Completed { .. })) {
            self.events.clear();
        }
        Some(event)
    }
}

impl EventSource for ScriptedEvents {
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let (delay, _) = self.events.front()?;
        if delay.is_zero() { self.take() } else { None }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        match self.events.front() {
            None => Poll::Ready(None),
            Some((delay, _)) if delay.is_zero() => Poll::Ready(self.take()),
            Some((delay, _)) => {
                let wait = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(*delay)));
                match wait.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(self.take()),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

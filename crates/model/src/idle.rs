//! The idle timeout of a stream.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// An idle timer. `reset` only stores the time; the timer is re-armed when it fires too early, which is rare.
pub(crate) struct Idle {
    limit: Duration,
    last: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    pub fn new(limit: Duration) -> Self {
        Self { limit, last: Instant::now(), sleep: None }
    }

    /// Records activity.
    pub fn reset(&mut self) {
        self.last = Instant::now();
    }

    /// Lowers the limit from now on.
    pub fn shorten(&mut self, limit: Duration) {
        self.limit = self.limit.min(limit);
    }

    /// Ready once the limit has passed without activity.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

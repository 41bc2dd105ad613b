//! How long a stream has been quiet.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A timer that is set rarely: an event only notes its time, and the timer finds out when it rings.
pub(crate) struct Idle {
    limit: Duration,
    last: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    pub fn new(limit: Duration) -> Self {
        Self { limit, last: Instant::now(), sleep: None }
    }

    /// Something came.
    pub fn reset(&mut self) {
        self.last = Instant::now();
    }

    /// From now on it may be quiet no longer than this.
    pub fn shorten(&mut self, limit: Duration) {
        self.limit = self.limit.min(limit);
    }

    /// Ready when it has been quiet for too long.
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

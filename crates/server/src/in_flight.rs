//! The requests of one connection that are being worked on, and whether more should be read meanwhile.

use std::future::pending;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use crate::limits;

/// A request that is being worked on; resolves when it has been answered.
pub(crate) type Request = Pin<Box<dyn Future<Output = Kind> + Send>>;

pub(crate) struct InFlight {
    requests: FuturesUnordered<Request>,
    /// How many of them are [`Kind::Short`].
    short: usize,
    /// When one of those was answered last.
    progressed: Instant,
}

/// Whether a request counts for back-pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Short,
    /// It takes as long as a program of the client runs, or a model answers.
    Long,
}

impl Kind {
    pub fn of(method: &str) -> Self {
        if matches!(method, "command/exec" | "thread/sample") { Self::Long } else { Self::Short }
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self { requests: FuturesUnordered::new(), short: 0, progressed: Instant::now() }
    }
}

impl InFlight {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() >= limits::MAX_IN_FLIGHT
    }

    /// Adds a request of a kind, which it also resolves to.
    pub fn push(&mut self, kind: Kind, request: Request) {
        if kind == Kind::Short {
            if self.short == 0 {
                self.progressed = Instant::now();
            }
            self.short += 1;
        }
        self.requests.push(request);
    }

    /// Resolves when the next request has been answered; pending while nothing is in flight. Cancel-safe.
    pub async fn next(&mut self) {
        let Some(kind) = self.requests.next().await else { return pending().await };
        if kind == Kind::Short {
            self.short -= 1;
            self.progressed = Instant::now();
        }
    }

    /// Resolves when another request should be read: at once, unless so many wait for an answer that it would only wait
    /// behind them. To be called anew after each answer.
    pub fn has_room(&self) -> impl Future<Output = ()> + Send + use<> {
        let stalled = (self.short >= limits::PAUSE_IN_FLIGHT).then(|| self.progressed + limits::IN_FLIGHT_STALLED);
        async move {
            if let Some(stalled) = stalled {
                sleep_until(stalled).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reading_pauses_while_short_requests_are_answered_and_goes_on_when_they_stall() {
        let mut requests = InFlight::default();
        for _ in 0..limits::PAUSE_IN_FLIGHT {
            requests.push(Kind::Long, Box::pin(pending()));
        }
        assert!(requests.has_room().now_or_never().is_some(), "programs of the client do not count");
        requests.push(Kind::Short, Box::pin(async { Kind::Short }));
        for _ in 1..limits::PAUSE_IN_FLIGHT {
            requests.push(Kind::Short, Box::pin(pending()));
        }
        assert!(requests.is_full());
        assert!(requests.has_room().now_or_never().is_none());
        requests.next().await;
        assert!(requests.has_room().now_or_never().is_some());
        requests.push(Kind::Short, Box::pin(pending()));
        assert!(requests.has_room().now_or_never().is_none());
        advance(limits::IN_FLIGHT_STALLED).await;
        requests.has_room().await;
    }
}

//! How long a server that keeps failing is left alone.

use std::time::{Duration, Instant};

/// Failures in a row that are tried again at once.
const FREE: u32 = 3;
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// The failures in a row of one server.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    pub fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
    }

    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// How much longer it must not be started; `None` when it may be.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let doublings = self.failures.checked_sub(FREE)?.min(16);
        let pause = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        let left = pause.saturating_sub(now.saturating_duration_since(self.last?));
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_keeps_failing_is_left_alone_ever_longer() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let waits: Vec<_> = (0..14)
            .map(|_| {
                backoff.failed(now);
                backoff.wait(now).map_or(0, |wait| wait.as_millis())
            })
            .collect();
        assert_eq!(waits[..5], [0, 0, 500, 1000, 2000]);
        assert_eq!(waits[13], 60_000);
        assert_eq!(backoff.wait(now + LONGEST), None);
        backoff.succeeded();
        assert_eq!((backoff.wait(now), backoff.failures()), (None, 0));
    }
}

//! The clock of a node, and until when its session counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds of a clock that never goes back and goes on while the machine sleeps.
pub(crate) fn now_ms() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0)
}

/// Until when the session of this node counts. Events of threads are sent only while it does, so that a process that
/// was stopped for longer sends none of a thread that may be another's.
#[derive(Debug, Default)]
pub(crate) struct LiveUntil(AtomicU64);

impl LiveUntil {
    pub fn set(&self, until: Option<u64>) {
        self.0.store(until.unwrap_or(0), Ordering::Release);
    }

    pub fn is_live(&self) -> bool {
        now_ms() < self.0.load(Ordering::Acquire)
    }
}

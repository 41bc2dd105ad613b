//! The number of running turns, for a shutdown that waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Busy {
    turns: AtomicUsize,
    /// A shutdown waits: idle threads start no turns by themselves.
    draining: AtomicBool,
    changed: Notify,
}

/// Counts a running turn until it is dropped.
pub(crate) struct BusyGuard(Arc<Busy>);

impl Busy {
    pub fn begin(self: &Arc<Self>) -> BusyGuard {
        self.turns.fetch_add(1, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    /// Whether the server is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The number of running turns.
    pub fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    /// Resolves when no turn is running. From now on idle threads start none by themselves.
    pub async fn until_idle(&self) {
        self.draining.store(true, Ordering::Relaxed);
        loop {
            let changed = self.changed.notified();
            if self.turns.load(Ordering::Relaxed) == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_waiters();
    }
}

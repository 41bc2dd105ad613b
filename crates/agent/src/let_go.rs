//! How a loaded thread is given up for another process to go on with: before its next step, or at once.

use std::future::pending;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long the running step may take when a thread is to be let go. Then it is cut off, as by the end of the process.
const STEP_LIMIT: Duration = Duration::from_secs(30);

/// Shared by a loaded thread, its turns, and whoever gives it up.
#[derive(Debug, Default)]
pub(crate) struct LetGo {
    /// Whether several processes share the thread.
    shared: bool,
    wanted: CancellationToken,
    since: OnceLock<Instant>,
    /// The running turn waits before its next step.
    at_step: Notify,
    abandoned: CancellationToken,
    /// The subscribers of the abandoned thread have been, or are being, notified.
    notified: AtomicBool,
}

impl LetGo {
    pub fn new(shared: bool) -> Self {
        Self { shared, ..Self::default() }
    }

    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Gives the thread up before its next step.
    pub fn want(&self) {
        self.since.get_or_init(Instant::now);
        self.wanted.cancel();
    }

    /// Gives the thread up at once.
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// True for the first caller, which notifies the subscribers of the abandoned thread.
    pub fn notifies(&self) -> bool {
        !self.notified.swap(true, Ordering::Relaxed)
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.is_cancelled()
    }

    /// Resolves when the thread is given up at once. Cancel-safe.
    pub async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    /// To be called by a turn before each step. Never resolves once the thread is to be given up.
    pub async fn before_step(&self) {
        if self.wanted.is_cancelled() {
            self.while_waiting().await;
        }
    }

    /// Never resolves. To be polled while a turn waits for a client, which is no step that has to end first.
    pub async fn while_waiting(&self) {
        self.wanted.cancelled().await;
        self.at_step.notify_one();
        pending::<()>().await;
    }

    /// Resolves when a thread that is to be given up has reached its next step, or is not to be waited for any longer.
    /// Cancel-safe.
    pub async fn due(&self, turn_runs: bool) {
        self.wanted.cancelled().await;
        if turn_runs {
            let since = self.since.get().copied().unwrap_or_else(Instant::now);
            tokio::select! {
                () = self.at_step.notified() => {}
                () = sleep_until(since + STEP_LIMIT) => {}
            }
        }
    }
}

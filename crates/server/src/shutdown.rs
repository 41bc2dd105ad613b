//! When to stop: signals, counted.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// The signals that end the server. From the moment this exists they no longer kill it.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    /// SIGHUP is one of them, unless it has another meaning.
    pub fn catch(hang_up_ends: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if hang_up_ends { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// Cancels `stop` at the first signal and returns at the second, when nothing more is to be waited for.
    pub async fn obey(mut self, stop: &CancellationToken) {
        self.next().await;
        info!("stopping: waiting for what is in progress");
        stop.cancel();
        self.next().await;
        info!("stopping at once");
    }

    async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hang_up => {}
        }
    }
}

//! Shutdown by signals: the first one stops the server, on network transports after running turns have ended; the
//! second one ends it at once.

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
    /// `hang_up_ends`: whether SIGHUP is one of them. Otherwise it reloads secrets.
    pub fn catch(hang_up_ends: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if hang_up_ends { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// After the first signal, cancels `stop` as soon as `drained` is done; returns at the second, when
    /// for which nothing is waited.
    pub async fn obey(mut self, drained: impl Future<Output = ()>, stop: &CancellationToken) {
        self.next().await;
        info!("stopping: waiting for what is in progress");
        let mut drained = std::pin::pin!(drained);
        tokio::select! {
            () = &mut drained => stop.cancel(),
            () = self.next() => return info!("stopping at once"),
        }
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

//! When to stop: signals, counted.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Cancels `stop` at the first SIGINT, SIGTERM or (where asked) SIGHUP; ends the process at the second.
pub(crate) async fn on_signals(stop: CancellationToken, hang_up: HangUp) -> std::io::Result<()> {
    let mut signals = Signals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hang_up: match hang_up {
            HangUp::Stops => Some(signal(SignalKind::hangup())?),
            HangUp::IsOthers => None,
        },
    };
    signals.next().await;
    info!("stopping: waiting for what is in progress");
    stop.cancel();
    signals.next().await;
    info!("stopping at once");
    std::process::exit(0);
}

/// Whether SIGHUP means the end.
pub(crate) enum HangUp {
    Stops,
    IsOthers,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
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

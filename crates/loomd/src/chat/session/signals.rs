//! The signals that a chat handles.

use std::io;

use tokio::signal::unix::{self, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C at a plain terminal.
    Interrupt,
    /// SIGTERM and SIGHUP.
    End,
    /// SIGTSTP: Ctrl-Z at a plain terminal.
    Suspend,
    /// SIGCONT.
    Continue,
    /// SIGWINCH.
    Resize,
}

pub struct Signals {
    signals: [(unix::Signal, Signal); 6],
}

impl Signals {
    pub fn new() -> io::Result<Self> {
        // By number: tokio has names for some only.
        let stop = SignalKind::from_raw(libc::SIGTSTP);
        let go_on = SignalKind::from_raw(libc::SIGCONT);
        Ok(Self {
            signals: [
                (signal(SignalKind::interrupt())?, Signal::Interrupt),
                (signal(SignalKind::terminate())?, Signal::End),
                (signal(SignalKind::hangup())?, Signal::End),
                (signal(stop)?, Signal::Suspend),
                (signal(go_on)?, Signal::Continue),
                (signal(SignalKind::window_change())?, Signal::Resize),
            ],
        })
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, meaning) in &mut self.signals {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*meaning);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

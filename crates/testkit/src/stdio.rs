//! [`Server`]: a server on stdio.

use std::ops::Deref;
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;

use crate::{CapturedOutput, Peer, Process, Signal};

/// A running server, started by [`Launch::stdio`](crate::Launch::stdio). Its requests and events are on [`Peer`].
pub struct Server {
    peer: Peer,
    process: Process,
}

impl Server {
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::spawn(command);
        let stdout = process.child().stdout.take().expect("stdout is piped");
        let stdin = process.child().stdin.take().expect("stdin is piped");
        let peer = Peer::of_process(stdout, stdin, Some(process.stderr().clone()));
        Self { peer, process }
    }

    /// Closes its stdin, which makes it exit.
    pub async fn close_stdin(&self) {
        self.peer.close().await;
    }

    /// Waits for the exit of the process. Cancel-safe.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        self.process.wait_exit().await
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn stderr(&self) -> &CapturedOutput {
        self.process.stderr()
    }
}

impl Deref for Server {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

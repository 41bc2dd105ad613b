//! One running program: its connections, waiting for it, and killing it when dropped. Callers decide how much of its
//! output is kept.

mod child;
mod confined;
mod guard;
mod kill;
mod launch;
mod stdio;
mod watch;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as platform;
// Nothing in it is particular to macOS, so its test runs everywhere.
#[cfg(all(test, not(target_os = "macos")))]
#[path = "macos/exit_handle.rs"]
mod exit_handle;

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use child::running_programs;
pub use confined::{SocketHolder, is_in_own_sandbox, socket_holder};
pub(crate) use guard::guard;
pub use stdio::{Input, Output, Size, Stdio, Terminal};

use crate::sandbox::is_wrapped;
use crate::{Command, Result};

/// A program that leads a session and a process group of its own. It is killed with all its descendants when this is
/// dropped before it ended, and when this process dies.
#[derive(Debug)]
pub struct Process {
    child: child::Child,
    ended: AsyncFd<OwnedFd>,
    terminal: Option<Terminal>,
    /// Present when it is sandboxed.
    _counted: Option<confined::RunningSandbox>,
}

/// A program that has just been started, with our ends of what it is connected to.
#[derive(Debug)]
pub struct StartedProcess {
    pub process: Process,
    /// `None` when the program's stdin is empty.
    pub stdin: Option<Input>,
    pub stdout: Output,
    /// `None` when stderr goes where stdout goes.
    pub stderr: Option<Output>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    /// A death by signal as shells number it.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl Process {
    pub async fn start(command: &Command, stdio: Stdio) -> Result<StartedProcess> {
        let (ours, theirs) = stdio::connect(stdio)?;
        let counted = is_wrapped(command).then(confined::RunningSandbox::new);
        let launch = launch::Launch::new(command, theirs, ours.terminal.is_some())?;
        let child = child::start(launch).await?;
        let ended = watch::watch(child.readable()?, Interest::READABLE)?;
        let process = Self { child, ended, terminal: ours.terminal, _counted: counted };
        Ok(StartedProcess { process, stdin: ours.stdin, stdout: ours.stdout, stderr: ours.stderr })
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Waits for the program to end. Those it started may live on and hold its output open. Can be dropped
    /// and called again.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        loop {
            if let Some(exit) = self.child.exit()? {
                return Ok(exit);
            }
            self.ended.readable().await?.clear_ready();
        }
    }

    /// Kills the program and all it started.
    pub fn kill(&self) {
        self.child.kill();
    }

    /// The program's terminal, if it has one.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }
}

//! A process descriptor: it becomes readable when the process has ended.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::process::Exit;
use crate::process::child::exit_of;

/// A child that can be waited for.
#[derive(Debug)]
pub(in crate::process) struct ExitHandle(OwnedFd);

impl ExitHandle {
    pub fn new(pidfd: OwnedFd) -> Self {
        Self(pidfd)
    }

    /// A descriptor that is readable when the child has ended.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// How the child ended, if it has. It stays a zombie.
    pub fn exit(&self) -> io::Result<Option<Exit>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::PidFd(self.0.as_fd()), options)?.as_ref().map(exit_of))
    }

    /// Whether the child has ended and its process table entry is gone.
    pub fn reap(&self) -> io::Result<bool> {
        let ended = waitid(WaitId::PidFd(self.0.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(ended.is_some())
    }

    /// Blocks until the child has ended, and reaps it.
    pub fn wait(&self) -> io::Result<()> {
        waitid(WaitId::PidFd(self.0.as_fd()), WaitIdOptions::EXITED)?;
        Ok(())
    }
}

//! A child that can be waited for by a descriptor: a thread blocks until the child has ended, and then closes its end
//! of a pipe.

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::process::Exit;
use crate::process::child::exit_of;

/// The thread makes one system call.
const STACK_BYTES: usize = 64 * 1024;

/// A child that can be waited for. It must be reaped through its handle only, so that its process id stays its own.
#[derive(Debug)]
pub(in crate::process) struct ExitHandle {
    pid: Pid,
    /// At its end when the child has ended.
    ended: PipeReader,
}

impl ExitHandle {
    pub fn new(pid: Pid) -> io::Result<Self> {
        let (ended, held) = io::pipe()?;
        let wait = move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            drop(held);
        };
        thread::Builder::new().name("wait-program".into()).stack_size(STACK_BYTES).spawn(wait)?;
        Ok(Self { pid, ended })
    }

    /// A descriptor that is readable when the child has ended.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        Ok(self.ended.try_clone()?.into())
    }

    /// How the child ended, if it has. It stays a zombie.
    pub fn exit(&self) -> io::Result<Option<Exit>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), options)?.as_ref().map(exit_of))
    }

    /// Whether the child has ended and its process table entry is gone.
    pub fn reap(&self) -> io::Result<bool> {
        let ended = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(ended.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_descriptor_is_at_its_end_when_the_child_has_ended() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let handle = ExitHandle::new(Pid::from_child(&child)).unwrap();
        assert_eq!(handle.exit().unwrap(), None);
        assert!(!handle.reap().unwrap());
        drop(child.stdin.take());
        let mut readable = PipeReader::from(handle.readable().unwrap());
        assert_eq!(readable.read(&mut [0]).unwrap(), 0);
        assert_eq!(handle.exit().unwrap(), Some(Exit::Code(0)));
        assert!(handle.reap().unwrap());
        assert!(child.wait().is_err());
    }
}

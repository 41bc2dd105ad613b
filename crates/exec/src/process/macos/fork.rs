//! Starts a program with `fork`: the child makes system calls only until it has become the program, and reports a
//! failure through a pipe that closes when it has.
#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::ExitHandle;
use crate::process::launch::{BlockedSignals, Launch, LaunchFailure, become_program};

/// The exit code of a child that did not become the program.
const FAILED: i32 = 127;

/// A forked child has a stack of its own, so there is nothing to provide.
pub(in crate::process) struct Stack;

impl Stack {
    pub fn new() -> Self {
        Self
    }
}

impl Launch {
    /// Starts the program, which leads a session and group of its own. The process id is written to `announce` even
    /// when the start fails after all.
    pub fn start(&self, _: &mut Stack, announce: Option<RawFd>) -> Result<(Pid, ExitHandle), LaunchFailure> {
        let failed = |group, error| LaunchFailure { group, error };
        let mut prepared = self.prepare(announce);
        let (mut failure, report) = io::pipe().map_err(|error| failed(None, error))?;
        let signals = BlockedSignals::all();
        // SAFETY: the child makes system calls only, so it needs no lock that another thread of ours may hold.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: we are the child that `become_program` is for; what it borrows is in our copy of the memory.
            let code = unsafe { become_program(&mut prepared) };
            // SAFETY: the pipe is open, the number lives until the call returns, and nothing runs after `_exit`.
            unsafe {
                libc::write(report.as_raw_fd(), (&raw const code).cast(), size_of_val(&code));
                libc::_exit(FAILED);
            }
        }
        let error = io::Error::last_os_error();
        drop((signals, report));
        let Some(group) = Pid::from_raw(pid).filter(|_| pid > 0) else { return Err(failed(None, error)) };
        let mut code = [0; size_of::<i32>()];
        let error = match failure.read_exact(&mut code) {
            Ok(()) => io::Error::from_raw_os_error(i32::from_ne_bytes(code)),
            // The pipe closed when the program was executed.
            Err(_) => match ExitHandle::new(group) {
                Ok(handle) => return Ok((group, handle)),
                Err(error) => {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                    error
                }
            },
        };
        let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED);
        Err(failed(Some(group), error))
    }
}

//! The guard: a helper process that kills every running program, with its descendants, when this process has died.
//! The parent-death signal reaches our children only, so each program announces its process id to the guard, and the
//! end of the guard's stdin means that this process is gone.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;

use super::kill::kill_all;
use super::launch::{Launch, LaunchFailure};
use super::platform::{ExitHandle, Stack, WatchedProcess};
use super::stdio::nothing;
use crate::helper::{GUARD, is_ready, this_program};
use crate::{Command, Environment};

/// The connection to the guard, which is started with the first program. Messages are process ids: positive from a
/// program that starts, negative from this process for one that ended.
#[derive(Debug, Default)]
pub(super) struct Guard(Option<GuardProcess>);

#[derive(Debug)]
struct GuardProcess {
    line: UnixStream,
    handle: ExitHandle,
}

impl Guard {
    /// Starts a program that the guard knows of. Without a guard, what the program starts may outlive us.
    pub fn start(&mut self, launch: &Launch, stack: &mut Stack) -> io::Result<(Pid, ExitHandle)> {
        if self.0.as_ref().is_none_or(|guard| !matches!(guard.handle.reap(), Ok(false))) {
            self.0 = GuardProcess::start(stack).unwrap_or_default();
        }
        let line = self.0.as_ref().map(|guard| guard.line.as_raw_fd());
        launch.start(stack, line).map_err(|LaunchFailure { group, error }| {
            group.into_iter().for_each(|group| self.ended(group));
            error
        })
    }

    pub fn ended(&self, group: Pid) {
        if let Some(guard) = &self.0 {
            // SAFETY: the line is open.
            unsafe { announce(guard.line.as_raw_fd(), -group.as_raw_pid()) };
        }
    }
}

impl GuardProcess {
    fn start(stack: &mut Stack) -> crate::Result<Option<Self>> {
        if !is_ready() {
            return Ok(None);
        }
        let (line, theirs) = UnixStream::pair()?;
        let mut command = Command::new([this_program()?], "/", Environment::default());
        command.arg0 = Some(GUARD.into());
        let launch = Launch::new(&command, [theirs.into(), nothing()?, nothing()?], false)?.outliving_us();
        let (_, handle) = launch.start(stack, None).map_err(|failed| failed.error)?;
        Ok(Some(Self { line, handle }))
    }
}

/// Sends a process id to the guard. Returns whether it was sent. One system call, fit for a child that shares our
/// memory.
///
/// # Safety
/// The descriptor must be open.
pub(super) unsafe fn announce(line: RawFd, number: libc::pid_t) -> bool {
    // No SIGPIPE when the guard has died, and no waiting when its buffer is full.
    #[cfg(target_os = "linux")]
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // The standard library sets `SO_NOSIGPIPE` on every socket here.
    #[cfg(target_os = "macos")]
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the number lives until the call returns.
    unsafe { libc::send(line, (&raw const number).cast(), size_of_val(&number), flags) > 0 }
}

/// Runs the guard until its stdin ends. Returns the exit code.
pub(crate) fn guard() -> i32 {
    // Inherited descriptors would keep pipes of other programs open.
    let _ = crate::helper::close_from(3);
    let mut running = BTreeMap::new();
    let mut message = [0; size_of::<libc::pid_t>()];
    let mut stdin = io::stdin().lock();
    while stdin.read_exact(&mut message).is_ok() {
        let number = libc::pid_t::from_ne_bytes(message);
        if number < 0 {
            running.remove(&-number);
        } else if let Some(pid) = Pid::from_raw(number)
            && let Ok(announced) = WatchedProcess::new(pid)
        {
            running.insert(number, (pid, announced));
        }
    }
    // The id of a program that has ended may have been reused.
    for (pid, _) in running.values().filter(|(_, announced)| !announced.has_ended()) {
        kill_all(*pid);
    }
    0
}

//! A process that ends what we started when we are gone. The kernel tells our own children, but not theirs; so
//! this one is told every program that runs, and when it hears no more of us it kills those that are left, with
//! all they started.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;

use super::kill::kill_all;
use super::launch::{Failed, Launch};
use super::platform::{Announced, ExitHandle, Stack};
use super::stdio::nothing;
use crate::helper::{GUARD, is_ready, this_program};
use crate::{Command, Environment};

/// Our end: started with the first program, if there can be one. What is said is a number: that of a program which
/// starts, which the program says itself, or with a minus that of one which ended.
#[derive(Debug, Default)]
pub(super) struct Guard(Option<Running>);

#[derive(Debug)]
struct Running {
    line: UnixStream,
    handle: ExitHandle,
}

impl Guard {
    /// Starts a program that the guard knows of. Without a guard, what the program starts may outlive us.
    pub fn start(&mut self, launch: &Launch, stack: &mut Stack) -> io::Result<(Pid, ExitHandle)> {
        if self.0.as_ref().is_none_or(|guard| !matches!(guard.handle.reap(), Ok(false))) {
            self.0 = Running::start(stack).unwrap_or_default();
        }
        let line = self.0.as_ref().map(|guard| guard.line.as_raw_fd());
        launch.start(stack, line).map_err(|Failed { group, error }| {
            group.into_iter().for_each(|group| self.ended(group));
            error
        })
    }

    pub fn ended(&self, group: Pid) {
        if let Some(guard) = &self.0 {
            // SAFETY: the line is open.
            unsafe { tell(guard.line.as_raw_fd(), -group.as_raw_pid()) };
        }
    }
}

impl Running {
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

/// Whether the guard was told. One system call, fit for a child that shares our memory.
///
/// # Safety
/// The descriptor must be open.
pub(super) unsafe fn tell(line: RawFd, number: libc::pid_t) -> bool {
    // A guard that is gone must not be our end, and one that does not listen must not hold us up.
    #[cfg(target_os = "linux")]
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // The standard library sets `SO_NOSIGPIPE` on every socket here.
    #[cfg(target_os = "macos")]
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the number lives until the call returns.
    unsafe { libc::send(line, (&raw const number).cast(), size_of_val(&number), flags) > 0 }
}

/// What the guard does.
pub(crate) fn guard() -> i32 {
    // What whoever started us was given is not ours to hold.
    let _ = crate::helper::close_from(3);
    let mut running = BTreeMap::new();
    let mut said = [0; size_of::<libc::pid_t>()];
    let mut us = io::stdin().lock();
    while us.read_exact(&mut said).is_ok() {
        let number = libc::pid_t::from_ne_bytes(said);
        if number < 0 {
            running.remove(&-number);
        } else if let Some(pid) = Pid::from_raw(number)
            && let Ok(announced) = Announced::new(pid)
        {
            running.insert(number, (pid, announced));
        }
    }
    // One that has ended may have left its number to another.
    for (pid, _) in running.values().filter(|(_, announced)| !announced.has_ended()) {
        kill_all(*pid);
    }
    0
}

//! What ends programs when we cannot do it any more. The kernel would tell a program that we died, but not
//! those that it started in turn; so a process of our own outlives us by a moment and kills them all. It is this
//! program under another name, and is started with the first command.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::kill::kill_all;
use crate::helper;

/// What we are called as the keeper.
const NAME: &str = "loomd-keeper";

/// Tells the keeper of programs: a number when one starts, its negative when it has ended.
#[derive(Clone, Debug)]
pub(super) struct Line(Arc<UnixStream>);

impl Line {
    /// For the child that is about to become a program, which says so itself: nothing can happen to us between
    /// its start and that.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn ended(&self, pid: Pid) {
        // SAFETY: our descriptor is open.
        unsafe { tell(self.fd(), -pid.as_raw_pid()) };
    }
}

/// Whether the keeper took it. One system call, fit for a child that shares our memory.
///
/// # Safety
/// The descriptor must be open.
pub(super) unsafe fn tell(fd: RawFd, number: i32) -> bool {
    let bytes = number.to_ne_bytes();
    // A keeper that is gone must not be our end, and one that is slow must not hold us.
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the bytes live until the call returns.
    unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) == bytes.len() as isize }
}

pub(super) struct Keeper {
    process: Child,
    line: Line,
}

impl Keeper {
    /// `None` in programs that cannot be started under another name, where the kernel's word has to do.
    pub fn start() -> Option<Self> {
        if !helper::is_available() {
            return None;
        }
        let (ours, theirs) = UnixStream::pair().ok()?;
        let process = Command::new(helper::THIS_PROGRAM)
            .arg0(NAME)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self { process, line: Line(Arc::new(ours)) })
    }

    pub fn line(&self) -> &Line {
        &self.line
    }

    /// Whether it is still there.
    pub fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// The keeper, from its start to its end, if this process was started as one.
pub(crate) fn keep_if_called(name: &str) {
    if name == NAME {
        let _ = keep(io::stdin().as_fd());
        std::process::exit(0)
    }
}

fn keep(line: std::os::fd::BorrowedFd) -> io::Result<()> {
    let _ = rustix::process::setsid();
    helper::ignore_ends();
    // What our owner was given by others is not ours to hold.
    helper::close_from(3)?;
    let mut line = UnixStream::from(line.try_clone_to_owned()?);
    let mut programs: BTreeMap<i32, OwnedFd> = BTreeMap::new();
    let mut number = [0; 4];
    // The line is cut when our owner is gone, however it went.
    while line.read_exact(&mut number).is_ok() {
        let number = i32::from_ne_bytes(number);
        match Pid::from_raw(number) {
            // One that is gone already needs no keeping.
            Some(pid) if number > 0 => drop(pidfd_open(pid, PidfdFlags::empty()).map(|fd| programs.insert(number, fd))),
            _ => drop(programs.remove(&number.saturating_neg())),
        }
    }
    for (number, pidfd) in &programs {
        if let Some(pid) = Pid::from_raw(*number)
            && !has_ended(pidfd)
        {
            kill_all(pid);
        }
    }
    Ok(())
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

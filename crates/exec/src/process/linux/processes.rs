//! The process table, read from `/proc`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that was announced to the guard. Its descriptor never refers to another process.
pub(in crate::process) struct WatchedProcess(OwnedFd);

impl WatchedProcess {
    pub fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    pub fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

/// Processes whose parent is a thread of this one. Empty on kernels without `children` files; then descendants are
/// found by their session only.
pub(in crate::process) fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Every process that is visible here.
pub(in crate::process) fn all_processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

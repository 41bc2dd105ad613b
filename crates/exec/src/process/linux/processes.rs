//! The process table, read from `/proc`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::helper::CLEANER;

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
/// found by their session only. Without cleaners of sandboxes, which must outlive what is killed.
pub(in crate::process) fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>());
    pids.filter(|child| !is_cleaner(*child, pid)).collect()
}

/// Whether a process is the cleaner of a sandbox: it has that name and runs the program of its parent, the helper. Only
/// a command without a sandbox could forge this, and such a command can have others start what is to survive it.
fn is_cleaner(pid: i32, parent: i32) -> bool {
    let named = fs::read(format!("/proc/{pid}/comm"));
    if !named.is_ok_and(|name| name.strip_suffix(b"\n") == Some(CLEANER.to_bytes())) {
        return false;
    }
    let program = |pid: i32| fs::metadata(format!("/proc/{pid}/exe")).map(|file| (file.dev(), file.ino())).ok();
    let helper = program(parent);
    helper.is_some() && program(pid) == helper
}

/// Whether a thread of this process may still start another process: it is neither stopped nor ending.
pub(in crate::process) fn can_act(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).any(|stat| may_run(&stat))
}

fn may_run(stat: &str) -> bool {
    // The name before may contain anything.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let stopped = matches!(fields.next(), None | Some("T" | "t" | "Z" | "X"));
    let flags: u32 = fields.nth(FLAGS_AFTER_STATE).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    !stopped && flags & ENDING == 0
}

/// How many fields of `stat` stand between the state and the flags.
const FLAGS_AFTER_STATE: usize = 5;
/// The flag of a thread that is ending.
const ENDING: u32 = 4;

/// Every process that is visible here.
pub(in crate::process) fn all_processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_stopped_or_ending_does_not_act() {
        for (stat, acts) in [
            ("12 (sleep) S 1 12 12 0 -1 4194304 172 0", true),
            ("12 (a) Z b) R 1 12 12 0 -1 4194304 172 0", true),
            ("12 (sleep) D 1 12 12 0 -1 4194304 172 0", true),
            ("12 (sleep) T 1 12 12 0 -1 4194304 172 0", false),
            ("12 (a) R b) Z 1 12 12 0 -1 4194304 172 0", false),
            ("12 (sleep) R 1 12 12 0 -1 4194308 172 0", false),
            ("", false),
        ] {
            assert_eq!(may_run(stat), acts, "{stat}");
        }
        assert!(can_act(std::process::id().cast_signed()));
        assert!(!can_act(i32::MAX));
    }
}

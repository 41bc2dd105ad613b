//! Which processes run in a sandbox of this process, as the kernel tells it. Listeners of ours serve none of them:
//! a sandboxed command that may use the network, or reach a socket, would otherwise ask its own server to run
//! commands without a sandbox.
//!
//! With Landlock alone there is no namespace that holds a sandbox together: a process there that has lost its parent
//! is not recognised.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sandboxed commands that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a sandboxed command for as long as it lives.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Who holds a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A process in a sandbox of ours, and nobody else.
    OwnSandbox,
    /// At least one process that is in no sandbox of ours.
    Other,
    /// None that could be found: the socket is on its way between processes, or its holder is out of our sight.
    Unknown,
}

/// Who holds the socket with this inode. Looks at the descriptors of every process while a sandboxed command runs, and
/// at nothing otherwise. Blocks.
pub fn socket_holder(inode: u64) -> Holder {
    if RUNNING.load(Ordering::SeqCst) == 0 {
        return Holder::Other;
    }
    let socket = format!("socket:[{inode}]");
    let mut holder = Holder::Unknown;
    for pid in all_processes().filter(|pid| holds(*pid, &socket)) {
        match is_in_own_sandbox(pid) {
            Ok(false) => return Holder::Other,
            Ok(true) => holder = Holder::OwnSandbox,
            Err(_) => {}
        }
    }
    holder
}

/// Whether a process runs in a sandbox of this process. An error when it is gone, or nothing can be said.
pub fn is_in_own_sandbox(pid: u32) -> io::Result<bool> {
    let own = std::process::id();
    if pid == own {
        return Ok(false);
    }
    let us = Status::of(own)?;
    let mut status = Status::of(pid)?;
    // What is confined stays so, and what it starts is confined as well.
    if !status.is_confined_more_than(&us) {
        return Ok(false);
    }
    for _ in 0..MAX_ANCESTORS {
        match status.parent {
            0 => return Ok(false),
            parent if parent == own => return Ok(true),
            parent => status = Status::of(parent)?,
        }
    }
    Err(io::Error::other("too many ancestors"))
}

/// Deeper than any tree of processes that means well.
const MAX_ANCESTORS: usize = 4096;

/// The part of `/proc/<pid>/status` that tells how a process is confined. Everybody can read it, whatever the process
/// does about itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    parent: u32,
    /// How many process namespaces it is visible in.
    namespaces: usize,
    no_new_privileges: bool,
    /// How many filters of system calls it has; only newer kernels tell.
    filters: u32,
}

impl Status {
    fn of(pid: u32) -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(format!("/proc/{pid}/status"))?))
    }

    fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let number = || value.trim().parse().unwrap_or(0);
            match name {
                "PPid" => status.parent = number(),
                "NSpid" => status.namespaces = value.split_whitespace().count(),
                "NoNewPrivs" => status.no_new_privileges = number() == 1,
                "Seccomp_filters" => status.filters = number(),
                _ => {}
            }
        }
        status
    }

    fn is_confined_more_than(&self, other: &Self) -> bool {
        self.namespaces > other.namespaces
            || self.no_new_privileges && !other.no_new_privileges
            || self.filters > other.filters
    }
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn holds(pid: u32, socket: &str) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|link| link.as_os_str() == socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_confined_by_namespaces_privileges_or_filters() {
        let plain = "Name:\tx\nPPid:\t7\nNSpid:\t12\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let us = Status::parse(plain);
        assert_eq!(us, Status { parent: 7, namespaces: 1, no_new_privileges: false, filters: 1 });
        for (from, to, confined) in [
            ("", "", false),
            ("NSpid:\t12", "NSpid:\t12\t1", true),
            ("NoNewPrivs:\t0", "NoNewPrivs:\t1", true),
            ("filters:\t1", "filters:\t2", true),
            ("filters:\t1", "filters:\t0", false),
        ] {
            assert_eq!(Status::parse(&plain.replace(from, to)).is_confined_more_than(&us), confined, "{to}");
        }
    }

    #[test]
    fn neither_this_process_nor_its_parent_is_in_a_sandbox_of_it() {
        assert!(!is_in_own_sandbox(std::process::id()).unwrap());
        let parent = Status::of(std::process::id()).unwrap().parent;
        assert!(parent == 0 || !is_in_own_sandbox(parent).unwrap());
        assert!(is_in_own_sandbox(u32::MAX).is_err());
    }
}

//! How a process is confined, and which processes hold a socket, as `/proc` has it.

use std::fs;
use std::io;

use super::all_processes;

/// The part of `/proc/<pid>/status` that shows how a process is confined. Readable by every user, whatever the process
/// does about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct Status {
    pub parent: u32,
    /// How many process namespaces it is visible in.
    namespaces: usize,
    no_new_privileges: bool,
    /// How many filters of system calls it has; 0 on kernels that do not report it.
    filters: u32,
}

impl Status {
    pub fn of(pid: u32) -> io::Result<Self> {
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

    pub fn is_confined_more_than(&self, other: &Self) -> bool {
        self.namespaces > other.namespaces
            || self.no_new_privileges && !other.no_new_privileges
            || self.filters > other.filters
    }
}

/// The processes that hold the socket with this inode, as far as they can be inspected.
pub(in crate::process) fn socket_holders(inode: u64) -> impl Iterator<Item = u32> {
    let socket = format!("socket:[{inode}]");
    all_processes().filter_map(|pid| u32::try_from(pid).ok()).filter(move |pid| holds(*pid, &socket))
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
}

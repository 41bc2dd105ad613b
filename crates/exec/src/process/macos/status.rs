//! How a process is confined.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::io;
use std::ptr;

use super::processes::information;

unsafe extern "C" {
    /// Whether a process is confined by Seatbelt, when no operation is named.
    fn sandbox_check(pid: libc::pid_t, operation: *const c_char, filter: c_int, ...) -> c_int;
}

/// The parent of a process, and whether it is confined.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::process) struct Status {
    pub parent: u32,
    sandboxed: bool,
}

impl Status {
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
        let parent = information(pid)?.pbi_ppid;
        // SAFETY: without an operation nothing is read.
        let sandboxed = unsafe { sandbox_check(pid, ptr::null(), 0) } != 0;
        // The first process of the system ends the chain of parents.
        Ok(Self { parent: if parent <= 1 { 0 } else { parent }, sandboxed })
    }

    pub fn is_confined_more_than(&self, other: &Self) -> bool {
        self.sandboxed && !other.sandboxed
    }
}

/// Nothing: sockets have no inodes here by which their holders could be found.
pub(in crate::process) fn socket_holders(_: u64) -> impl Iterator<Item = u32> {
    std::iter::empty()
}

//! Which processes run in a sandbox of this process. Listeners of the server refuse them: a sandboxed command that
//! can reach a socket would otherwise have its own server run commands without a sandbox.
//!
//! With Landlock alone there is no namespace that holds a sandbox together: a process there that has lost its parent
//! is not recognised.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::platform::{Status, socket_holders};

/// Sandboxed commands that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a sandboxed command for as long as it lives.
#[derive(Debug)]
pub(super) struct RunningSandbox(());

impl RunningSandbox {
    pub fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for RunningSandbox {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The kind of processes that hold a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketHolder {
    /// Only processes in a sandbox of ours.
    OwnSandbox,
    /// At least one process that is in no sandbox of ours.
    Other,
    /// No holder was found: the socket is being passed between processes, or its holder is not visible.
    Unknown,
}

/// Returns the kind of holders of the socket with this inode. Reads the descriptors of every process while a sandboxed
/// command runs, and nothing otherwise. Blocks.
pub fn socket_holder(inode: u64) -> SocketHolder {
    if RUNNING.load(Ordering::SeqCst) == 0 {
        return SocketHolder::Other;
    }
    let mut holder = SocketHolder::Unknown;
    for pid in socket_holders(inode) {
        match is_in_own_sandbox(pid) {
            Ok(false) => return SocketHolder::Other,
            Ok(true) => holder = SocketHolder::OwnSandbox,
            Err(_) => {}
        }
    }
    holder
}

/// Whether a process runs in a sandbox of this process. An error when it has ended or cannot be inspected.
pub fn is_in_own_sandbox(pid: u32) -> io::Result<bool> {
    let own = std::process::id();
    if pid == own {
        return Ok(false);
    }
    let us = Status::of(own)?;
    let mut status = Status::of(pid)?;
    // Confinement is permanent and inherited, so a process that is not more confined than this one is in no sandbox of
    // it.
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

/// The most ancestors of a process that are followed.
const MAX_ANCESTORS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_this_process_nor_its_parent_is_in_a_sandbox_of_it() {
        assert!(!is_in_own_sandbox(std::process::id()).unwrap());
        let parent = Status::of(std::process::id()).unwrap().parent;
        assert!(parent == 0 || !is_in_own_sandbox(parent).unwrap());
        assert!(is_in_own_sandbox(u32::MAX).is_err());
    }
}

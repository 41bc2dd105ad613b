//! Descriptors that are registered with the runtime.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(super) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and the same until it is dropped, and nothing here exchanges it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

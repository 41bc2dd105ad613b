//! System calls of a child that has yet to become a program.
#![allow(unsafe_code)]

use std::ffi::c_int;

/// The error number of the last system call.
///
/// # Safety
/// None; it is as unsafe as the calls around it, so that they read as one.
pub(in crate::process) unsafe fn errno() -> c_int {
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *libc::__error() }
}

/// Does nothing: orphans go to the first process of the system.
///
/// # Safety
/// None.
pub(in crate::process) unsafe fn adopt_orphans() {}

/// Returns 0, or the error number when the parent has died already. The guard detects its later death.
///
/// # Safety
/// One system call, fit for a forked child.
pub(in crate::process) unsafe fn end_with_parent(parent: libc::pid_t) -> c_int {
    // SAFETY: getppid has no preconditions.
    if unsafe { libc::getppid() } == parent { 0 } else { libc::ESRCH }
}

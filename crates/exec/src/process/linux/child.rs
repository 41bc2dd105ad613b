//! System calls of a child that has yet to become a program.
#![allow(unsafe_code)]

use std::ffi::c_int;

/// The error number of the last system call.
///
/// # Safety
/// None; it is as unsafe as the calls around it, so that they read as one.
pub(in crate::process) unsafe fn errno() -> c_int {
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *libc::__errno_location() }
}

/// Makes every orphan among the descendants a child of this process, so that it stays in the tree that is killed.
///
/// # Safety
/// One system call, fit for a child that shares memory with its parent.
pub(in crate::process) unsafe fn adopt_orphans() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Ends this process when the thread that started it ends. Returns the error number, or 0.
///
/// # Safety
/// System calls only, fit for a child that shares memory with its parent.
pub(in crate::process) unsafe fn end_with_parent(parent: libc::pid_t) -> c_int {
    // SAFETY: takes numbers only.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
            return errno();
        }
        // A parent that died before the call sends no signal.
        if libc::getppid() == parent { 0 } else { libc::ESRCH }
    }
}

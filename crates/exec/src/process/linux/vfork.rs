//! Starts a program the way `vfork` does: the child shares the memory of this process until it executes the program, so
//! the cost does not depend on the size of that memory.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Pid;

use super::ExitHandle;
use crate::process::launch::{BlockedSignals, Launch, LaunchFailure, PreparedLaunch, become_program};

/// The size of the child's stack, on which it only makes system calls.
const STACK_BYTES: usize = 64 * 1024;

/// The memory that one start shares with its child.
struct SharedWithChild<'a> {
    prepared: PreparedLaunch<'a>,
    failure: AtomicI32,
}

impl Launch {
    /// Starts the program, which leads a session and group of its own. The process id is written to `announce` even
    /// when the start fails after all.
    pub fn start(&self, stack: &mut Stack, announce: Option<RawFd>) -> Result<(Pid, ExitHandle), LaunchFailure> {
        let mut shared = SharedWithChild { prepared: self.prepare(announce), failure: AtomicI32::new(0) };
        let mut pidfd: c_int = -1;
        let signals = BlockedSignals::all();
        // SAFETY: the stack is ours alone and large enough for `child`, which makes system calls only. With
        // CLONE_VFORK this thread sleeps until the child has executed the program or ended, so nothing that
        // `shared` points to moves or is freed meanwhile. All signals are blocked, so no handler of ours runs
        // in the child. CLONE_PIDFD stores to the pointer in the third variable place.
        let pid = unsafe {
            libc::clone(
                child,
                stack.top(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD,
                (&raw mut shared).cast(),
                &raw mut pidfd,
            )
        };
        let error = io::Error::last_os_error();
        drop(signals);
        let Some(group) = Pid::from_raw(pid).filter(|_| pid > 0) else {
            return Err(LaunchFailure { group: None, error });
        };
        // SAFETY: the kernel opened this descriptor just now, and nothing else owns it.
        let handle = ExitHandle::new(unsafe { OwnedFd::from_raw_fd(pidfd) });
        match shared.failure.load(Ordering::Acquire) {
            0 => Ok((group, handle)),
            code => {
                // The child ends right after it has stored the error.
                let _ = handle.wait();
                Err(LaunchFailure { group: Some(group), error: io::Error::from_raw_os_error(code) })
            }
        }
    }
}

/// The stack of a child until it executes the program. One is enough for a thread, which sleeps meanwhile.
pub(in crate::process) struct Stack(Vec<u128>);

impl Stack {
    pub fn new() -> Self {
        Self(vec![0; STACK_BYTES / size_of::<u128>()])
    }

    fn top(&mut self) -> *mut c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to a live `SharedWithChild` and sleeps until we are gone.
    let shared = unsafe { &mut *shared.cast::<SharedWithChild>() };
    // SAFETY: we are the child that `become_program` is for.
    let code = unsafe { become_program(&mut shared.prepared) };
    shared.failure.store(code, Ordering::Release);
    127
}

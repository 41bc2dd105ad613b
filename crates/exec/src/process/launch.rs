//! Starting a program the way `vfork` does: the child borrows our memory until it has become the program,
//! so the cost does not grow with ours. The standard library can do that too, but not together with a
//! session of its own, a controlling terminal and a signal for when we die.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::guard::tell;
use crate::file_limit;
use crate::helper::CHANNEL;
use crate::{Command, Error};

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The child only makes system calls on it.
const STACK_BYTES: usize = 64 * 1024;
const HIGHEST_SIGNAL: c_int = 64;

/// Everything the child needs, made beforehand: it must not allocate, lock or unwind.
pub(super) struct Launch {
    candidates: Vec<CString>,
    /// One free place, then the words: a file that turns out to be a script gets `/bin/sh` in front.
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    stdio: [OwnedFd; 3],
    /// Becomes descriptor 3.
    channel: Option<OwnedFd>,
    terminal: bool,
    outlives_us: bool,
    /// The limit of descriptors that the program gets instead of ours.
    file_limit: Option<libc::rlimit>,
}

/// What one start shares with the child that borrows our memory.
struct Shared<'a> {
    launch: &'a Launch,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    parent: libc::pid_t,
    /// Where the child says which group it leads, before it can start anything.
    announce: Option<RawFd>,
    failure: AtomicI32,
}

impl Launch {
    /// With a `terminal` the three descriptors are its other side, and it becomes the controlling one.
    pub fn new(command: &Command, stdio: [OwnedFd; 3], terminal: bool) -> Result<Self, Error> {
        let program = command.argv.first().ok_or(Error::EmptyCommand)?;
        let text = |text: &[u8]| CString::new(text).map_err(|_| Error::NulByte);
        let path = command.env.get("PATH").unwrap_or(DEFAULT_PATH);
        let candidates = if program.contains('/') {
            vec![text(program.as_bytes())?]
        } else if program.is_empty() {
            Vec::new()
        } else {
            let folders = path.split(':').map(|folder| if folder.is_empty() { "." } else { folder });
            folders.map(|folder| text(format!("{folder}/{program}").as_bytes())).collect::<Result<_, _>>()?
        };
        let mut argv = command.argv.iter().map(|word| text(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        if let Some(arg0) = &command.arg0 {
            argv[0] = text(arg0.as_bytes())?;
        }
        let env = command.env.0.iter().map(|(name, value)| text(format!("{name}={value}").as_bytes()));
        let env = env.collect::<Result<_, _>>()?;
        let cwd = text(command.cwd.as_os_str().as_bytes())?;
        let [stdin, stdout, stderr] = stdio.map(above_standard);
        // Not 3 itself: making a descriptor what it is already would not keep it open.
        let channel = command.channel.as_ref().map(|channel| rustix::io::fcntl_dupfd_cloexec(&channel.0, CHANNEL + 1));
        let channel = channel.transpose().map_err(io::Error::from)?;
        let stdio = [stdin?, stdout?, stderr?];
        Ok(Self {
            candidates,
            argv,
            env,
            cwd,
            stdio,
            channel,
            terminal,
            outlives_us: false,
            file_limit: file_limit::original(),
        })
    }

    /// Does not end the program when we do.
    pub fn outliving_us(mut self) -> Self {
        self.outlives_us = true;
        self
    }

    /// Starts the program, which leads a session and group of its own. The descriptor says when it ended. The
    /// number of the group is written to `announce` even when the start fails after all.
    pub fn start(&self, stack: &mut Stack, announce: Option<RawFd>) -> Result<(Pid, OwnedFd), Failed> {
        let mut argv = vec![ptr::null(); 1];
        argv.extend(self.argv.iter().map(|word| word.as_ptr()));
        argv.push(ptr::null());
        let mut env: Vec<_> = self.env.iter().map(|pair| pair.as_ptr()).collect();
        env.push(ptr::null());
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        let mut shared = Shared { launch: self, argv, env, parent, announce, failure: AtomicI32::new(0) };
        let mut pidfd: c_int = -1;
        let signals = Blocked::all();
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
        let Some(group) = Pid::from_raw(pid).filter(|_| pid > 0) else { return Err(Failed { group: None, error }) };
        // SAFETY: the kernel opened this descriptor for us just now and nobody else knows it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        match shared.failure.load(Ordering::Acquire) {
            0 => Ok((group, pidfd)),
            code => {
                // It has nothing left to do but end.
                let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                Err(Failed { group: Some(group), error: io::Error::from_raw_os_error(code) })
            }
        }
    }
}

/// A start that failed, after the group was announced or before.
pub(super) struct Failed {
    pub group: Option<Pid>,
    pub error: io::Error,
}

/// Where a child stands until it is a program. One is enough for a thread: it sleeps meanwhile.
pub(super) struct Stack(Vec<u128>);

impl Stack {
    pub fn new() -> Self {
        Self(vec![0; STACK_BYTES / size_of::<u128>()])
    }

    fn top(&mut self) -> *mut c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

/// Descriptors 0 to 2 are about to be replaced in the child, so none of ours may be among them.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

/// All signals held back on this thread, until dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        // SAFETY: both sets are plain memory that the calls fill in; the calls cannot fail with these arguments.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Self(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by `all`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to a live `Shared` and sleeps until we are gone.
    let shared = unsafe { &mut *shared.cast::<Shared>() };
    // SAFETY: we are the child that `become_program` is for.
    let code = unsafe { become_program(shared) };
    shared.failure.store(code, Ordering::Release);
    127
}

/// Only returns when it failed, with the error number.
///
/// # Safety
/// To be called in a child that shares memory with a sleeping parent: everything here is a bare system call.
unsafe fn become_program(shared: &mut Shared) -> c_int {
    // SAFETY: every pointer below is to memory that `Launch` or `Shared` keeps alive and NUL-terminated; every
    // call is safe after vfork, allocates nothing and takes no lock.
    unsafe {
        let errno = || *libc::__errno_location();
        libc::setsid();
        let launch = shared.launch;
        // Whatever loses its parent becomes a child of the program, and so stays among those that descend from it.
        if !launch.outlives_us {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        // Whoever is guarded is not to be told of our end as well: it would end first, and be missing when those are
        // looked for that it started.
        let guarded = shared.announce.is_some_and(|line| tell(line, libc::getpid()));
        if !guarded && !launch.outlives_us {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return errno();
            }
            if libc::getppid() != shared.parent {
                // We were too late to be told that the parent died.
                return libc::ESRCH;
            }
        }
        if launch.terminal && libc::ioctl(launch.stdio[0].as_raw_fd(), libc::TIOCSCTTY, 0) != 0 {
            return errno();
        }
        for (standard, fd) in launch.stdio.iter().enumerate() {
            if libc::dup2(fd.as_raw_fd(), standard as c_int) < 0 {
                return errno();
            }
        }
        if let Some(channel) = &launch.channel
            && libc::dup2(channel.as_raw_fd(), CHANNEL) < 0
        {
            return errno();
        }
        if libc::chdir(launch.cwd.as_ptr()) != 0 {
            return errno();
        }
        if let Some(limit) = &launch.file_limit {
            libc::setrlimit(libc::RLIMIT_NOFILE, limit);
        }
        restore_signals();
        let argv = shared.argv.as_ptr().add(1);
        let mut denied = false;
        for candidate in &launch.candidates {
            libc::execve(candidate.as_ptr(), argv, shared.env.as_ptr());
            match errno() {
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                libc::EACCES => denied = true,
                libc::ENOEXEC => {
                    // A script without a first line that names its interpreter, as `execvp` treats it.
                    shared.argv[0] = c"/bin/sh".as_ptr();
                    shared.argv[1] = candidate.as_ptr();
                    libc::execve(c"/bin/sh".as_ptr(), shared.argv.as_ptr(), shared.env.as_ptr());
                    return errno();
                }
                other => return other,
            }
        }
        if denied { libc::EACCES } else { libc::ENOENT }
    }
}

/// Handlers of ours must not run in the child, and what we ignore for ourselves it should not.
///
/// # Safety
/// As for `become_program`; signals are blocked until the end of this function.
unsafe fn restore_signals() {
    // SAFETY: the structures are plain memory; numbers that cannot be changed are refused, which is fine.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        for signal in 1..=HIGHEST_SIGNAL {
            if libc::sigaction(signal, ptr::null(), &mut action) == 0
                && action.sa_sigaction != libc::SIG_DFL
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
            {
                action = std::mem::zeroed();
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

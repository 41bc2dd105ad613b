//! What starting a program needs, prepared before there is a child, and what the child does to become the program. The
//! standard library cannot start one with a session of its own, a controlling terminal and a signal for when we die.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::process::Pid;

use super::guard::announce;
use super::platform::{self, errno};
use crate::file_limit;
use crate::helper::CHANNEL;
use crate::{Command, Error};

/// The `PATH` for an environment without one.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const HIGHEST_SIGNAL: c_int = 64;

/// Everything the child needs, allocated beforehand: it must not allocate, lock or unwind.
pub(super) struct Launch {
    candidates: Vec<CString>,
    /// One free slot, then the arguments: a script without interpreter line gets `/bin/sh` in front.
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

/// The arguments of one start, as the system calls take them.
pub(super) struct PreparedLaunch<'a> {
    launch: &'a Launch,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    parent: libc::pid_t,
    /// The guard's socket, to which the child writes its process id before it can start anything.
    announce: Option<RawFd>,
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

    /// The program is not killed when this process dies.
    pub fn outliving_us(mut self) -> Self {
        self.outlives_us = true;
        self
    }

    /// `announce` is the guard's socket.
    pub(super) fn prepare(&self, announce: Option<RawFd>) -> PreparedLaunch<'_> {
        let mut argv = vec![ptr::null(); 1];
        argv.extend(self.argv.iter().map(|word| word.as_ptr()));
        argv.push(ptr::null());
        let mut env: Vec<_> = self.env.iter().map(|pair| pair.as_ptr()).collect();
        env.push(ptr::null());
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        PreparedLaunch { launch: self, argv, env, parent, announce }
    }
}

/// A start that failed, after the group was announced or before.
pub(super) struct LaunchFailure {
    pub group: Option<Pid>,
    pub error: io::Error,
}

/// Descriptors 0 to 2 are about to be replaced in the child, so none of ours may be among them.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

/// All signals held back on this thread, until dropped.
pub(super) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub fn all() -> Self {
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

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by `all`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// Only returns when it failed, with the error number.
///
/// # Safety
/// To be called in a child that shares memory with a sleeping parent, or that was forked: everything here is a bare
/// system call.
pub(super) unsafe fn become_program(prepared: &mut PreparedLaunch) -> c_int {
    // SAFETY: every pointer below is to memory that `Launch` or `PreparedLaunch` keeps alive and NUL-terminated; every
    // call is safe after vfork, allocates nothing and takes no lock.
    unsafe {
        libc::setsid();
        let launch = prepared.launch;
        // Orphaned descendants become children of the program, and so stay in its tree.
        if !launch.outlives_us {
            platform::adopt_orphans();
        }
        // A guarded program gets no parent-death signal: it would end first, and its descendants could not be found
        // from it.
        let guarded = prepared.announce.is_some_and(|line| announce(line, libc::getpid()));
        if !guarded && !launch.outlives_us {
            let failure = platform::end_with_parent(prepared.parent);
            if failure != 0 {
                return failure;
            }
        }
        if launch.terminal && libc::ioctl(launch.stdio[0].as_raw_fd(), libc::TIOCSCTTY as _, 0) != 0 {
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
        let argv = prepared.argv.as_ptr().add(1);
        let mut denied = false;
        for candidate in &launch.candidates {
            libc::execve(candidate.as_ptr(), argv, prepared.env.as_ptr());
            match errno() {
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                libc::EACCES => denied = true,
                libc::ENOEXEC => {
                    // A script without a first line that names its interpreter, as `execvp` treats it.
                    prepared.argv[0] = c"/bin/sh".as_ptr();
                    prepared.argv[1] = candidate.as_ptr();
                    libc::execve(c"/bin/sh".as_ptr(), prepared.argv.as_ptr(), prepared.env.as_ptr());
                    return errno();
                }
                other => return other,
            }
        }
        if denied { libc::EACCES } else { libc::ENOENT }
    }
}

/// Restores the default handling of all signals: handlers of this process must not run in the child, and signals that
/// this process ignores should not be ignored there.
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

//! Helpers: this program, started under another name, for work that needs a process of its own.
#![allow(unsafe_code)]

use std::env;
use std::io;
use std::os::fd::RawFd;
#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process;

/// The path of this program, also when its file has been replaced since.
#[cfg(target_os = "linux")]
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";
/// Where a program is found whose descriptor was inherited.
#[cfg(target_os = "linux")]
pub(crate) const INHERITED: &str = "/proc/self/fd/";
/// Confines a command and becomes it.
#[cfg(target_os = "linux")]
pub(crate) const SANDBOX: &str = "loomd-linux-sandbox";
/// Kills the programs of a process that has died.
pub(crate) const GUARD: &str = "loomd-guard";
/// The thread name of the process that removes the placeholders of a sandbox (`placeholder.rs`). It ends by itself once
/// the helper has ended, so it is left out when a program is killed with its descendants.
#[cfg(target_os = "linux")]
pub(crate) const CLEANER: &std::ffi::CStr = c"loomd-cleaner";

/// The descriptor of the socket between a helper and the process that started it, where there is one.
pub(crate) const CHANNEL: RawFd = 3;

/// Whether `main` has called [`run_if_helper`]. If not, starting this program as a helper would run its `main`.
static READY: AtomicBool = AtomicBool::new(false);

/// Does the work of a helper and never returns, if this process was started as one. To be called first in `main`,
/// before there are other threads. Without it no command can be sandboxed, and descendants of commands may outlive a
/// server that is killed.
pub fn run_if_helper() {
    let mut args = env::args_os().peekable();
    let called = args.next().map(PathBuf::from);
    #[cfg(target_os = "linux")]
    {
        let inherited = called.as_deref().is_some_and(|path| path.starts_with(INHERITED));
        if inherited && args.peek().is_some_and(|first| first == crate::sandbox::INSIDE) {
            std::process::exit(crate::sandbox::help(args));
        }
    }
    match called.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        #[cfg(target_os = "linux")]
        Some(SANDBOX) => std::process::exit(crate::sandbox::help(args)),
        Some(GUARD) => std::process::exit(process::guard()),
        _ => READY.store(true, Ordering::Relaxed),
    }
}

/// The path of this program. On Linux it leads to it even when its file has been replaced since.
pub(crate) fn this_program() -> io::Result<String> {
    #[cfg(target_os = "linux")]
    return Ok(THIS_PROGRAM.to_owned());
    #[cfg(not(target_os = "linux"))]
    return env::current_exe()?.into_os_string().into_string().map_err(|_| io::ErrorKind::InvalidFilename.into());
}

pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Relaxed)
}

/// The socket that connects this helper to the process that started it. To be called once, by a helper that was
/// given one.
#[cfg(target_os = "linux")]
pub(crate) fn take_channel() -> OwnedFd {
    // SAFETY: it was opened for us before we were started, and nothing else here knows of it.
    unsafe { OwnedFd::from_raw_fd(CHANNEL) }
}

/// Closes this descriptor and all above it when this process executes another program.
#[cfg(target_os = "linux")]
pub(crate) fn close_on_exec_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: closes nothing now: it only sets a flag on descriptors.
    done(unsafe { close_range(first, libc::CLOSE_RANGE_CLOEXEC) })
}

/// Closes this descriptor and all above it. Only for a helper that has opened none yet.
#[cfg(target_os = "linux")]
pub(crate) fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: those that are open in that range were inherited, and nothing here owns them.
    done(unsafe { close_range(first, 0) })
}

/// The system call; not every C library has a function for it.
///
/// # Safety
/// Without the flag to close later, nothing may own the descriptors from `first` on.
#[cfg(target_os = "linux")]
unsafe fn close_range(first: libc::c_uint, flags: libc::c_uint) -> libc::c_int {
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) as libc::c_int }
}

#[cfg(target_os = "linux")]
fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes this descriptor and all above it. Only for a helper that has opened none yet.
#[cfg(not(target_os = "linux"))]
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    let names = std::fs::read_dir("/dev/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let open: Vec<RawFd> = names.filter_map(|name| name.parse().ok()).filter(|fd| *fd >= first).collect();
    for fd in open {
        // SAFETY: inherited, and nothing here owns it; the one that listed the others is closed already and refused.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

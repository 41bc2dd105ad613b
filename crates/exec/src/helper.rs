//! This program under another name: started again to confine a command, or to outlive us by a moment.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{process, sandbox};

/// This very program, even when its file has been replaced since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// When this process was started to help another one of us, does that and never returns. To be called first
/// thing in `main`, before there are other threads. Programs that do not call it cannot confine commands.
pub fn run_if_helper() {
    let called = std::env::args_os().next().map(PathBuf::from);
    if let Some(name) = called.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        process::keep_if_called(name);
        sandbox::confine_if_called(name);
    }
    AVAILABLE.store(true, Ordering::Relaxed);
}

/// Whether `main` can do what it takes.
pub(crate) fn is_available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

/// Closes this descriptor and all above it when this process becomes another program.
pub(crate) fn close_on_exec_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: closes nothing now: it only sets a flag on descriptors, whoever owns them.
    done(unsafe { libc::close_range(first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int) })
}

/// Closes this descriptor and all above it. Only for a helper that has not opened any yet.
pub(crate) fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: called before anything here owns a descriptor of that range; those that are open were inherited.
    done(unsafe { libc::close_range(first, libc::c_uint::MAX, 0) })
}

/// Signals that ask to end, or come from a keyboard, are not for this process.
pub(crate) fn ignore_ends() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP] {
        // SAFETY: no handler of ours is installed: the signal is ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn done(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

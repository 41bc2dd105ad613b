//! This program under other names: some work must be done by a process of its own, and the one program that is
//! always at hand is this one.
#![allow(unsafe_code)]

use std::env;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{process, sandbox};

/// This very program, even when its file has been replaced since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";
/// Where a program is found whose descriptor was inherited.
pub(crate) const INHERITED: &str = "/proc/self/fd/";
/// Confines a command and becomes it.
pub(crate) const SANDBOX: &str = "loomd-linux-sandbox";
/// Ends what was started when whoever started it is gone.
pub(crate) const GUARD: &str = "loomd-guard";

/// The descriptor of the line between a helper and whoever started it, where there is one.
pub(crate) const CHANNEL: RawFd = 3;

/// Whether this program knows what to do under those names; if not, starting it would start another of us.
static READY: AtomicBool = AtomicBool::new(false);

/// When this process was started as a helper, does that work and never returns. To be called first thing in
/// `main`, before there are other threads; without it no command can be sandboxed, and what commands start in
/// turn may outlive a server that is killed.
pub fn run_if_helper() {
    let mut args = env::args_os().peekable();
    let called = args.next().map(PathBuf::from);
    let inherited = called.as_deref().is_some_and(|path| path.starts_with(INHERITED));
    if inherited && args.peek().is_some_and(|first| first == sandbox::INSIDE) {
        std::process::exit(sandbox::help(args));
    }
    match called.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(SANDBOX) => std::process::exit(sandbox::help(args)),
        Some(GUARD) => std::process::exit(process::guard()),
        _ => READY.store(true, Ordering::Relaxed),
    }
}

pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Relaxed)
}

/// The line to whoever started this helper. To be called once, by a helper that was given one.
pub(crate) fn take_channel() -> OwnedFd {
    // SAFETY: it was opened for us before we were started, and nothing else here knows of it.
    unsafe { OwnedFd::from_raw_fd(CHANNEL) }
}

/// Closes this descriptor and all above it when this process becomes another program.
pub(crate) fn close_on_exec_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: closes nothing now: it only sets a flag on descriptors, whoever owns them.
    done(unsafe { libc::close_range(first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) })
}

/// Closes this descriptor and all above it. Only for a helper that has opened none yet.
pub(crate) fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: those that are open in that range were inherited, and nothing here owns them.
    done(unsafe { libc::close_range(first, libc::c_uint::MAX, 0) })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

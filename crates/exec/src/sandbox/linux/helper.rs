//! This program as the helper that confines a command and becomes it.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;

use super::namespaces::{become_command, init};
use super::sys::leave_keyring;
use super::{bubblewrap, landlock, loopback_ports, namespaces, placeholder, report, seccomp};
use crate::helper::{SANDBOX, close_on_exec_from, take_channel};
use crate::sandbox::{Mechanism, Sandbox};

/// The exit code of a helper that was called wrongly, or that could not confine the command.
pub(super) const USAGE: i32 = 125;

/// The error when a root was moved or replaced; the command does not run.
const CHANGED: &str = "a root of the sandbox has changed";

/// The helper's first argument when bubblewrap has made the mounts already.
pub(crate) const INSIDE: &str = "--inside-the-sandbox";

/// Runs the helper. Its arguments are the sandbox and the words of the command.
pub(crate) fn help(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args.peekable();
    if args.next_if(|first| first == report::REPORT).is_some() {
        return report::print();
    }
    let inside = args.next_if(|first| first == INSIDE).is_some();
    let plan = args.next().and_then(|plan| plan.into_string().ok());
    let sandbox = plan.and_then(|plan| serde_json::from_str::<Sandbox>(&plan).ok());
    let argv: Vec<OsString> = args.collect();
    let Some(sandbox) = sandbox.filter(|_| !argv.is_empty()) else {
        eprintln!("{SANDBOX}: started by hand; it is of no use on its own");
        return USAGE;
    };
    let channel = (!sandbox.loopback_ports.is_empty()).then(take_channel);
    // The command must not inherit other descriptors: it could leave the sandbox through them.
    if let Err(error) = close_on_exec_from(3) {
        return complain("cannot keep our descriptors from the command", &error);
    }
    if inside { run_inside(&sandbox, &argv, channel) } else { run(&sandbox, &argv, channel) }
}

/// Goes on as the first process of a sandbox whose mounts are made. `channel` is the socket for its listeners.
fn run_inside(sandbox: &Sandbox, argv: &[OsString], channel: Option<OwnedFd>) -> i32 {
    if let Err(error) = channel.map_or(Ok(()), |channel| loopback_ports::open(&sandbox.loopback_ports, &channel)) {
        return complain("cannot open the way to the proxy", &error);
    }
    match sandbox.check_granted() {
        Ok(()) => init(sandbox, argv),
        Err(error) => complain(CHANGED, &error),
    }
}

fn run(sandbox: &Sandbox, argv: &[OsString], mut channel: Option<OwnedFd>) -> i32 {
    let cwd = match env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => return complain("cannot tell the working directory", &error),
    };
    if let Err(error) = sandbox.check_granted().and_then(|()| sandbox.check_exceptions()) {
        return complain(CHANGED, &error);
    }
    if sandbox.mechanism != Mechanism::Landlock {
        let absent = sandbox.writable.iter().flat_map(|root| &root.absent);
        let taken = match placeholder::take(absent) {
            Ok(taken) => taken,
            Err(error) => return complain("cannot protect what does not exist yet", &error),
        };
        if sandbox.mechanism == Mechanism::Best
            && let Ok(code) = namespaces::run(sandbox, &cwd, argv, &mut channel)
        {
            return code;
        }
        // This system does not allow namespaces: the other mechanisms are tried.
        if let Some(program) = bubblewrap::find(env::var_os("PATH"), sandbox, &cwd) {
            let code = bubblewrap::run(&program, sandbox, &cwd, argv, channel);
            drop(taken);
            return code.unwrap_or_else(|error| complain("cannot start bubblewrap", &error));
        }
        if sandbox.mechanism == Mechanism::Bubblewrap {
            return complain("cannot start bubblewrap", &io::ErrorKind::NotFound.into());
        }
        if !sandbox.has_only_whole_folders() {
            let reason = io::Error::other("neither namespaces nor bubblewrap are to be had");
            return complain("this system cannot protect what lies in a writable folder", &reason);
        }
    }
    if channel.is_some() {
        let reason = io::Error::other("Landlock makes no network of its own");
        return complain("this sandbox cannot lead the command's connections through a proxy", &reason);
    }
    // Exceptions were requested, unlike default protections, so the command is refused without them.
    if !sandbox.exceptions.is_empty() {
        let reason = io::Error::other("Landlock cannot take back what lies in a folder");
        return complain("this sandbox cannot keep parts of a folder from the command", &reason);
    }
    leave_keyring();
    let confined = landlock::confine(sandbox).and_then(|()| sandbox.limits.apply(false));
    match confined.and_then(|()| seccomp::restrict(sandbox)) {
        Ok(()) => become_command(argv),
        Err(error) => complain("this system offers no way to confine a command", &error),
    }
}

/// Prints an error of the sandbox, with a prefix that no command's error has. Returns the exit code.
pub(super) fn complain(what: &str, error: &io::Error) -> i32 {
    eprintln!("sandbox: {what}: {error}");
    USAGE
}

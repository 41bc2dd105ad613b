//! Confinement by namespaces: the file system of [`mounts`](super::mounts), hidden processes, and no network unless it is
//! granted. Three processes are involved: the helper outside, an init inside that is the parent of all processes there,
//! and the command.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::CWD;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getegid, geteuid, set_parent_process_death_signal, wait, waitpid,
};

use super::sys::{
    Fork, bring_loopback_up, drop_capabilities, exit, forbid_inspection, fork, heed_keyboard, ignore_keyboard,
    leave_keyring, make_private,
};
use super::{helper, landlock, loopback_ports, mounts, seccomp};
use crate::helper::close_from;
use crate::sandbox::Sandbox;

/// The report of the init that the confinement is set up.
const READY: u8 = b'+';
/// The report that this system does not allow it; nothing was changed.
const UNAVAILABLE: u8 = b'-';
/// The report that the setup failed.
const FAILED: u8 = b'!';

/// Runs the command and returns its exit code. An error when namespaces are not available; then nothing has run.
/// `channel` is the socket for the listeners of loopback ports; no process of the sandbox keeps it.
pub(super) fn run(sandbox: &Sandbox, cwd: &Path, argv: &[OsString], channel: &mut Option<OwnedFd>) -> io::Result<i32> {
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if !sandbox.network {
        namespaces |= libc::CLONE_NEWNET;
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    match fork(namespaces)? {
        Fork::Child => {
            drop(report);
            let mut reporter = fs::File::from(reporter);
            let report = match enter(user, group).map(|()| confine(sandbox, cwd, channel.take())) {
                Err(_) => UNAVAILABLE,
                Ok(Ok(())) => READY,
                Ok(Err(error)) => {
                    helper::complain("cannot confine the command", &error);
                    FAILED
                }
            };
            // The parent may have died; then the report cannot be written and nothing runs.
            let written = reporter.write_all(&[report]).is_ok();
            drop(reporter);
            if report != READY || !written {
                exit(helper::USAGE);
            }
            exit(init(sandbox, argv))
        }
        Fork::Parent(init) => {
            drop(reporter);
            ignore_keyboard();
            let mut outcome = Vec::new();
            fs::File::from(report).read_to_end(&mut outcome)?;
            let code = wait_for(init)?;
            if outcome == [UNAVAILABLE] { Err(io::ErrorKind::Unsupported.into()) } else { Ok(code) }
        }
    }
}

/// Sets up the new namespaces: maps the user and group, as far as the system allows it.
fn enter(user: u32, group: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    make_private(CWD, c"/")
}

/// Mounts the file system, and drops every capability to change it.
fn confine(sandbox: &Sandbox, cwd: &Path, channel: Option<OwnedFd>) -> io::Result<()> {
    if let Some(channel) = channel {
        bring_loopback_up()?;
        loopback_ports::open(&sandbox.loopback_ports, &channel)?;
    }
    mounts::confine(sandbox, cwd)?;
    drop_capabilities()
}

/// Starts the command and waits for it, and for everything that loses its parent meanwhile. When the command
/// has ended so does this process, and with it the kernel ends all that is left inside.
pub(super) fn init(sandbox: &Sandbox, argv: &[OsString]) -> i32 {
    start_and_wait(sandbox, argv).unwrap_or_else(|error| helper::complain("cannot start the command", &error))
}

fn start_and_wait(sandbox: &Sandbox, argv: &[OsString]) -> io::Result<i32> {
    shut_in(sandbox)?;
    let command = match fork(0)? {
        Fork::Child => exit(become_command(argv)),
        Fork::Parent(command) => command,
    };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return Ok(code_of(status)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Confines this process like the command, so that the command cannot leave the sandbox through it: closes all
/// descriptors of the outside, and forbids inspection by other processes.
fn shut_in(sandbox: &Sandbox) -> io::Result<()> {
    close_from(3)?;
    forbid_inspection()?;
    leave_keyring();
    if sandbox.landlock {
        landlock::back_up_mounts(sandbox)?;
    }
    sandbox.limits.apply(true)?;
    seccomp::restrict(sandbox)
}

/// Only returns when it failed, with the exit code that shells use.
pub(super) fn become_command(argv: &[OsString]) -> i32 {
    heed_keyboard();
    let Some((program, arguments)) = argv.split_first() else { return helper::USAGE };
    let error = Command::new(program).args(arguments).exec();
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => {
            eprintln!("{program}: command not found");
            127
        }
        _ => {
            eprintln!("{program}: {error}");
            126
        }
    }
}

pub(super) fn wait_for(process: Pid) -> io::Result<i32> {
    loop {
        match waitpid(Some(process), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(code_of(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn code_of(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| Some(128 + status.terminating_signal()?)).unwrap_or(1)
}

//! Confinement on Linux: this program, started under another name, sets up the confinement and executes the command.
//!
//! Three mechanisms are tried in turn: namespaces of our own, bubblewrap (which some systems allow where they refuse
//! us), and Landlock alone, which cannot protect folders inside a writable one. Behind the first two Landlock is
//! applied as well where the kernel has it. [`Report`] is which of them work.

mod bubblewrap;
mod devices;
mod entries;
mod helper;
mod landlock;
mod limits;
mod loopback_ports;
mod mounts;
mod namespaces;
mod placeholder;
mod report;
mod seccomp;
mod sys;

use std::path::Path;

pub(crate) use helper::{INSIDE, help};
pub use loopback_ports::LoopbackPorts;
pub use report::Report;

use super::{Sandbox, WritableRoot};
use crate::helper::{SANDBOX, THIS_PROGRAM, is_ready};
use crate::{Command, Error, Result};

/// The command that runs `command` in this sandbox. `helper` is a program whose `main` calls
/// [`run_if_helper`](crate::run_if_helper); without one it is this program.
pub(super) fn wrap(sandbox: &Sandbox, command: &Command, helper: Option<&Path>) -> Result<Command> {
    if helper.is_none() && !is_ready() {
        return Err(Error::NoHelper);
    }
    let plan = serde_json::to_string(sandbox).map_err(|_| Error::SandboxPath)?;
    let helper = helper.unwrap_or(Path::new(THIS_PROGRAM)).to_str().ok_or(Error::SandboxPath)?;
    let mut argv = vec![helper.to_owned(), plan];
    argv.extend(command.argv.iter().cloned());
    Ok(Command { argv, arg0: Some(SANDBOX.into()), ..command.clone() })
}

/// The command that runs `command` in this sandbox with its loopback ports, and their outer side.
pub(super) fn wrap_with_ports(
    sandbox: &Sandbox,
    command: &Command,
    helper: Option<&Path>,
) -> Result<(Command, LoopbackPorts)> {
    let (loopback_ports, channel) = LoopbackPorts::new(sandbox.loopback_ports.len())?;
    Ok((Command { channel: Some(channel), ..wrap(sandbox, command, helper)? }, loopback_ports))
}

impl Sandbox {
    /// Whether commands may do the same in all of every writable folder, which is all that Landlock can express.
    fn has_only_whole_folders(&self) -> bool {
        let whole = |root: &WritableRoot| root.protected.is_empty() && root.absent.is_empty();
        self.exceptions.is_empty() && self.writable.iter().all(whole)
    }
}

/// Whether a command was wrapped in a sandbox by this crate.
pub(crate) fn is_wrapped(command: &Command) -> bool {
    command.arg0.as_deref() == Some(SANDBOX)
}

//! Confinement on macOS: commands run through `sandbox-exec` with a Seatbelt profile. Roots are checked when a command
//! is wrapped; the profile names paths, so it cannot hold a folder by its inode as mounts do. There is no network of a
//! command's own, so a proxied command is refused, and no limit of processes or memory.

mod loopback_ports;
mod report;
mod seatbelt;

use std::path::Path;

pub use loopback_ports::LoopbackPorts;
pub use report::Report;

use super::Sandbox;
use crate::{Command, Error, Result};

/// The command that runs `command` in this sandbox. No helper program is needed.
pub(super) fn wrap(sandbox: &Sandbox, command: &Command, _helper: Option<&Path>) -> Result<Command> {
    if !sandbox.loopback_ports.is_empty() {
        return Err(Error::NoLoopbackPorts);
    }
    sandbox.check_granted()?;
    sandbox.check_exceptions()?;
    let mut argv = seatbelt::words(sandbox).ok_or(Error::SandboxPath)?;
    argv.extend(command.argv.iter().cloned());
    Ok(Command { argv, arg0: None, ..command.clone() })
}

/// Always an error: a command here has no loopback of its own.
pub(super) fn wrap_with_ports(_: &Sandbox, _: &Command, _: Option<&Path>) -> Result<(Command, LoopbackPorts)> {
    Err(Error::NoLoopbackPorts)
}

/// Whether a command was wrapped in a sandbox by this crate.
pub(crate) fn is_wrapped(command: &Command) -> bool {
    command.argv.first().is_some_and(|program| program == seatbelt::PROGRAM)
}

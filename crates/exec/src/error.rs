//! Errors before a program runs. The failure of a running program is not an error.

use std::io;

/// The messages are those of the protocol, which clients and models know.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("execution error: Io({0:?})")]
    Io(#[from] io::Error),
    #[error("command must not be empty")]
    EmptyCommand,
    #[error("execution error: the command or its environment holds a NUL byte")]
    NulByte,
    #[error("this program cannot confine commands: its `main` must call `run_if_helper` first")]
    NoHelper,
    #[error("a path of the sandbox is not valid UTF-8")]
    SandboxPath,
    /// Only where the platform gives a command no network of its own.
    #[error("this system cannot route the network of a command through a proxy")]
    NoLoopbackPorts,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

//! Running programs: pipes and terminals, captured output, process groups, the environment of a command, and sandboxes.
//! Independent of turns and approvals: callers pass a command that may run, and get its output and exit status.
//!
//! Where to start: [`run`] for one command from start to end, [`Sessions`] for commands that live on, [`sandbox`]
//! for how a command is confined.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("commands can only be run and confined on Linux (5.4 or later) and macOS");

mod activation;
mod capture;
mod command;
mod environment;
mod error;
mod file_limit;
mod git;
mod helper;
mod process;
mod run;
pub mod sandbox;
mod sessions;
mod shell;
mod snapshot;
mod supervise;
mod text;

pub use activation::take_passed_socket;
pub use capture::{Head, HeadTail, RETAINED_BYTES};
pub use command::{Command, Environment};
pub use environment::{EnvironmentRequest, NETWORK_DISABLED, environment};
pub use error::{Error, Result};
pub use file_limit::raise_file_limit;
pub use git::ConfinedGit;
pub use helper::run_if_helper;
pub use process::{
    Exit, Input, Output, Process, Size, SocketHolder, StartedProcess, Stdio, Terminal, is_in_own_sandbox,
    running_programs, socket_holder,
};
pub use run::{FinishedCommand, Limits, Outcome, Stream, run, run_with_input};
pub use sessions::{
    Event, ReservedId, SESSIONS_WARNED, SessionEnd, SessionPoll, Sessions, StartedSession, WriteError, start_yield,
    write_yield,
};
pub use shell::{LoginShellDisabled, Shell, ShellKind, login};
pub use snapshot::{Snapshot, SnapshotRequest, remove_stale_snapshots, snapshot_folder};
pub use supervise::{Sink, Supervision, supervise};
pub use text::{TextChunks, to_text};

//! Running a program: pipes and terminals, captured output, process groups, the environment a command
//! sees, sandboxes, what a command line means, and the rules that say when to ask first. It does not know
//! what a turn is: callers bring a command and callbacks, and get back what happened.
//!
//! Where to start: [`run`] for one command from start to end, [`Sessions`] for commands that live on,
//! [`decide`] for whether to ask, [`sandbox`] for how a command is confined.

#[cfg(not(target_os = "linux"))]
compile_error!("commands can only be run and confined on Linux so far (5.4 or later)");

mod actions;
mod capture;
mod command;
mod decide;
mod environment;
mod error;
mod file_limit;
mod git;
mod git_environment;
mod helper;
mod heredoc;
#[cfg(test)]
mod oracle;
mod process;
mod quote;
mod repository;
pub mod rules;
mod run;
mod safety;
pub mod sandbox;
mod script;
mod sessions;
mod shell;
mod snapshot;
mod supervise;
mod suspects;
mod text;
mod trust;
mod word;

pub use actions::command_actions;
pub use capture::{Head, HeadTail, RETAINED_BYTES};
pub use command::{Command, Environment};
pub use decide::{Decision, Question, approval_key, decide, refuse_escalation};
pub use environment::{EnvironmentRequest, NETWORK_DISABLED, environment};
pub use error::{Error, Result};
pub use file_limit::raise_file_limit;
pub use git::ConfinedGit;
pub use helper::run_if_helper;
pub use heredoc::Heredoc;
pub use process::{
    Exit, Holder, Input, Output, Process, Size, Started, Stdio, Terminal, is_in_own_sandbox, socket_holder,
};
pub use quote::join;
pub use run::{Finished, Limits, Outcome, Stream, run, run_with_input};
pub use safety::{is_dangerous, is_known_safe};
pub use script::{Script, script_of};
pub use sessions::{
    Ended, Event, Launched, Polled, Reserved, SESSIONS_WARNED, Sessions, WriteError, start_yield, write_yield,
};
pub use shell::{LoginRefused, Shell, ShellKind, login};
pub use snapshot::{Snapshot, SnapshotRequest, remove_stale_snapshots, snapshot_folder};
pub use supervise::{Sink, Supervision, supervise};
pub use text::{TextChunks, to_text};
pub use trust::{Origin, Trust};
pub use word::Word;

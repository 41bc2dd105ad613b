//! `loomd review`: reviews changes, as one turn at the terminal.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use loomd_protocol::ReviewTarget;

use crate::cli::TopOverrides;
use crate::run::{self, EXIT_STATUS, Remarks, Task, ThreadChoice, TurnArgs};

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Review {
    /// What to review, in words; `-` reads it from stdin. Without any target, uncommitted changes are reviewed
    #[arg(conflicts_with_all = ["uncommitted", "base", "commit"])]
    pub instructions: Vec<String>,
    /// Review uncommitted changes: staged, unstaged and untracked
    #[arg(long, conflicts_with_all = ["base", "commit"])]
    pub uncommitted: bool,
    /// Review the changes since this branch
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    pub base: Option<String>,
    /// Review the changes of this commit
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
    /// Review in a stored thread: its id, a prefix of its id, its name, or `last`
    #[arg(long, value_name = "ID|last")]
    pub resume: Option<String>,
    #[command(flatten)]
    pub turn: TurnArgs,
}

pub fn run(top: TopOverrides, arguments: Review) -> Result<ExitCode> {
    let Review { instructions, base, commit, resume, turn, .. } = arguments;
    let target = match (base, commit) {
        (Some(branch), _) => ReviewTarget::BaseBranch { branch: Some(branch) },
        (None, Some(sha)) => ReviewTarget::Commit { sha, title: None },
        (None, None) if instructions.is_empty() => ReviewTarget::UncommittedChanges,
        (None, None) => ReviewTarget::Custom { instructions: Some(run::text(Some(instructions.join(" ")))?) },
    };
    let choice = match resume {
        Some(name) => ThreadChoice::Resume(name),
        None => ThreadChoice::New { ephemeral: false },
    };
    run::run_turn(top, turn, choice, Task::Review(target), Remarks::default())
}

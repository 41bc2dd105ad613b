//! The arguments of `loomd exec`, compatible with those that the TypeScript SDK passes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::Overrides;
use crate::run::{Color, EXIT_STATUS, Sandbox};

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Exec {
    #[command(subcommand)]
    pub command: Option<ExecCommand>,
    /// The prompt; read from stdin if missing; a pipe or a file on stdin is appended to it
    pub prompt: Option<String>,
    #[command(flatten)]
    pub common: Common,
    /// What sandboxed commands may do
    #[arg(short, long, value_name = "MODE")]
    pub sandbox: Option<Sandbox>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// The folder to work in
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// An additional writable folder
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// A JSON Schema that the last message must follow
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    #[command(flatten)]
    _unused: IgnoredExecFlags,
}

/// What to run in place of a turn in a new thread.
#[derive(Subcommand)]
pub enum ExecCommand {
    /// Resume a thread
    Resume {
        /// Its id, a prefix of its id, or its name
        #[arg(required_unless_present = "last")]
        id: Option<String>,
        /// The prompt
        prompt: Option<String>,
        /// The last used one in this folder
        #[arg(long)]
        last: bool,
        /// The last used one in any folder
        #[arg(long, requires = "last")]
        all: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Review changes
    Review {
        #[command(flatten)]
        target: Target,
        /// The title of the commit
        #[arg(long, requires = "commit")]
        title: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

/// The changes to review.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// Instructions for the review; `-` reads them from stdin
    pub prompt: Option<String>,
    /// Uncommitted changes
    #[arg(long)]
    pub uncommitted: bool,
    /// Changes since this branch
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// The changes of this commit
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
}

/// Arguments accepted before and after `resume` and `review`.
#[derive(Args, Default)]
pub struct Common {
    /// Print one event per line, in the format of the SDK
    #[arg(long, alias = "experimental-json")]
    pub json: bool,
    /// An image to attach; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// The model to use
    #[arg(short, long)]
    pub model: Option<String>,
    /// Never request approval, and let commands write to the workspace
    #[arg(long)]
    pub full_auto: bool,
    /// Never request approval, and run commands without a sandbox
    #[arg(long, alias = "yolo", conflicts_with = "full_auto")]
    pub dangerously_bypass_approvals_and_sandbox: bool,
    /// Do not store the thread
    #[arg(long)]
    pub ephemeral: bool,
    /// A file to write the agent's last message to
    #[arg(short, long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,
    /// Accepted; a git repository is not required
    #[arg(long, hide = true)]
    skip_git_repo_check: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// Flags without effect, accepted so that a caller can start other programs with the same command line.
#[derive(Args)]
struct IgnoredExecFlags {
    #[arg(long, hide = true)]
    thread_source: Option<String>,
    #[arg(long, hide = true)]
    cyber_access_program: Option<String>,
}

impl Common {
    /// Merges both levels; the later one wins.
    pub fn with(self, later: Self) -> Self {
        let both = |mut before: Vec<_>, after: Vec<_>| {
            before.extend(after);
            before
        };
        Self {
            json: self.json || later.json,
            image: self.image.into_iter().chain(later.image).collect(),
            model: later.model.or(self.model),
            full_auto: self.full_auto || later.full_auto,
            dangerously_bypass_approvals_and_sandbox: self.dangerously_bypass_approvals_and_sandbox
                || later.dangerously_bypass_approvals_and_sandbox,
            ephemeral: self.ephemeral || later.ephemeral,
            output_last_message: later.output_last_message.or(self.output_last_message),
            skip_git_repo_check: self.skip_git_repo_check || later.skip_git_repo_check,
            overrides: Overrides {
                config: both(self.overrides.config, later.overrides.config),
                enable: both(self.overrides.enable, later.overrides.enable),
                disable: both(self.overrides.disable, later.overrides.disable),
            },
        }
    }
}

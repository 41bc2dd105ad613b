//! The arguments of `loomd exec`: those of the program that the SDK usually starts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::Overrides;
use crate::run::{Color, EXIT_STATUS, Sandbox};

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Exec {
    #[command(subcommand)]
    pub command: Option<ExecCommand>,
    /// What the agent is asked to do; stdin is read without one, and added to it where it is a pipe or a file
    pub prompt: Option<String>,
    #[command(flatten)]
    pub common: Common,
    /// What commands may do
    #[arg(short, long, value_name = "MODE")]
    pub sandbox: Option<Sandbox>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// The folder to work in
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// A further folder that may be written to
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

/// What to do instead of asking something in a new thread.
#[derive(Subcommand)]
pub enum ExecCommand {
    /// Go on with a thread
    Resume {
        /// Its id, the beginning of it, or its name
        #[arg(required_unless_present = "last")]
        id: Option<String>,
        /// What the agent is asked to do
        prompt: Option<String>,
        /// The last one in this folder
        #[arg(long)]
        last: bool,
        /// The last one in any folder
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

/// What is reviewed.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// Whatever this says; `-` reads it from stdin
    pub prompt: Option<String>,
    /// What is not committed yet
    #[arg(long)]
    pub uncommitted: bool,
    /// What was changed since this branch
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// What this commit changed
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
}

/// What may stand before and after `resume` and `review`.
#[derive(Args, Default)]
pub struct Common {
    /// Print an event per line, as the SDK reads them
    #[arg(long, alias = "experimental-json")]
    pub json: bool,
    /// An image to look at; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// The model to use
    #[arg(short, long)]
    pub model: Option<String>,
    /// Ask for nothing, and let commands write below the folder
    #[arg(long)]
    pub full_auto: bool,
    /// Ask for nothing, and let commands do anything
    #[arg(long, alias = "yolo", conflicts_with = "full_auto")]
    pub dangerously_bypass_approvals_and_sandbox: bool,
    /// Keep nothing of it on disk
    #[arg(long)]
    pub ephemeral: bool,
    /// A file for the agent's last message
    #[arg(short, long, value_name = "FILE")]
    pub output_last_message: Option<PathBuf>,
    /// Accepted; any folder will do
    #[arg(long, hide = true)]
    skip_git_repo_check: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// Flags that say nothing to us, accepted so that whoever starts this program need not know which it is.
#[derive(Args)]
struct IgnoredExecFlags {
    #[arg(long, hide = true)]
    thread_source: Option<String>,
    #[arg(long, hide = true)]
    cyber_access_program: Option<String>,
}

impl Common {
    /// Both levels in one; the later one wins.
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

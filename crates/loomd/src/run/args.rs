//! The arguments of `loomd run`, and those of all commands that run a turn at the terminal.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use loomd_protocol::{AskForApproval, SandboxMode};

use super::screen::Color;
use crate::cli::Overrides;

pub const EXIT_STATUS: &str = "\
Exit status:
  0  the turn is done
  1  the turn failed, or could not be started
  2  invalid arguments
  3  the turn was interrupted, or an approval was declined

If stdout is not a terminal, it gets only the agent's last message; everything else goes to stderr.";

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Run {
    /// The prompt; `-` reads it from stdin. Stdin is appended to it if it is a pipe or a file
    pub prompt: Vec<String>,
    /// Resume a thread: its id, a prefix of its id, its name, or `last` for the last used one in this folder
    #[arg(long, value_name = "ID|last")]
    pub resume: Option<String>,
    /// An image to attach (PNG, JPEG, GIF or WebP); may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// A JSON Schema that the last message must follow
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Do not store the thread
    #[arg(long, conflicts_with = "resume")]
    pub ephemeral: bool,
    #[command(flatten)]
    pub turn: TurnArgs,
}

/// How a turn runs and is shown.
#[derive(Args, Default)]
pub struct TurnArgs {
    /// Print every notification of the server, one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The model to use; by default that of the resumed thread, else of config.toml
    #[arg(short, long)]
    pub model: Option<String>,
    /// The provider: one of config.toml, or a built-in one; by default as for the model
    #[arg(long, value_name = "ID")]
    pub provider: Option<String>,
    /// The folder to work in
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// What sandboxed commands may do; by default as in config.toml, else `workspace-write` in a folder with a trust
    /// level (`loomd trust`) and `read-only` in any other
    #[arg(short, long, value_name = "MODE")]
    pub sandbox: Option<Sandbox>,
    /// When to request approval; by default as in config.toml, else `on-request`, and `untrusted` in an untrusted
    /// folder
    #[arg(short, long, value_name = "POLICY", alias = "ask-for-approval")]
    pub ask: Option<ApprovalPolicy>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// Run the turn in a running server: `ws://HOST:PORT`, `wss://HOST:PORT`, `unix://PATH`, or `unix://` for the
    /// socket in the home
    #[arg(long, value_name = "URL")]
    pub attach: Option<String>,
    /// The environment variable that holds the token for --attach
    #[arg(long, value_name = "VARIABLE", requires = "attach")]
    pub attach_token_env: Option<String>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sandbox {
    /// Commands can only read
    ReadOnly,
    /// Commands can also write to the workspace
    WorkspaceWrite,
    /// Commands run without a sandbox
    DangerFullAccess,
}

impl From<Sandbox> for SandboxMode {
    fn from(sandbox: Sandbox) -> Self {
        match sandbox {
            Sandbox::ReadOnly => Self::ReadOnly,
            Sandbox::WorkspaceWrite => Self::WorkspaceWrite,
            Sandbox::DangerFullAccess => Self::DangerFullAccess,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApprovalPolicy {
    /// Before every command that is not known to be safe
    Untrusted,
    /// After a command failed in the sandbox
    OnFailure,
    /// When the model requests it
    OnRequest,
    /// Never: what the sandbox denies fails
    Never,
}

impl From<ApprovalPolicy> for AskForApproval {
    fn from(ask: ApprovalPolicy) -> Self {
        match ask {
            ApprovalPolicy::Untrusted => Self::Untrusted,
            ApprovalPolicy::OnFailure => Self::OnFailure,
            ApprovalPolicy::OnRequest => Self::OnRequest,
            ApprovalPolicy::Never => Self::Never,
        }
    }
}

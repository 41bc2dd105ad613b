//! The arguments of `loomd run`.

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

If stdout is no terminal, it gets only the agent's last message; everything else goes to stderr.";

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Run {
    /// The prompt; `-` reads it from stdin
    pub prompt: Option<String>,
    /// Print every notification of the server, one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// A JSON Schema that the last message must follow
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Resume a thread: its id, a prefix of its id, its name, or `last` for the last used one in this folder
    #[arg(long, value_name = "ID|last")]
    pub resume: Option<String>,
    /// An image to attach; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// The model to use
    #[arg(short, long)]
    pub model: Option<String>,
    /// The provider: one of config.toml, or a built-in one
    #[arg(long, value_name = "ID")]
    pub provider: Option<String>,
    /// The folder to work in
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// What sandboxed commands may do
    #[arg(short, long, value_name = "MODE")]
    pub sandbox: Option<Sandbox>,
    /// When to request approval
    #[arg(short, long, value_name = "POLICY", alias = "ask-for-approval")]
    pub ask: Option<ApprovalPolicy>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// Do not store the thread
    #[arg(long, conflicts_with = "resume")]
    pub ephemeral: bool,
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

//! The arguments of `loomd run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use loomd_protocol::{AskForApproval, SandboxMode};

use super::screen::Color;
use crate::cli::Overrides;

/// Shown below the help.
pub const EXIT_STATUS: &str = "\
Exit status:
  0  the turn is done
  1  the turn failed, or could not be started
  2  the command line makes no sense
  3  the turn was interrupted, or something that the agent asked for was refused

Where stdout is no terminal, it gets the agent's last message only; everything else goes to stderr.";

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Run {
    /// What the agent is asked to do; `-` reads it from stdin
    pub prompt: Option<String>,
    /// Print every notification of the server, one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// A JSON Schema that the last message must follow
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Go on with a thread: its id, the beginning of it, its name, or `last` for the last one in this folder
    #[arg(long, value_name = "ID|last")]
    pub resume: Option<String>,
    /// An image to look at; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// The model to use
    #[arg(short, long)]
    pub model: Option<String>,
    /// Who serves the model: a provider of config.toml, or one that is built in
    #[arg(long, value_name = "ID")]
    pub provider: Option<String>,
    /// The folder to work in
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// What commands may do
    #[arg(short, long, value_name = "MODE")]
    pub sandbox: Option<Sandbox>,
    /// When to ask for approval
    #[arg(short, long, value_name = "POLICY", alias = "ask-for-approval")]
    pub ask: Option<ApprovalPolicy>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// Keep nothing of it on disk
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
    /// Commands may read
    ReadOnly,
    /// Commands may also write below the folder
    WorkspaceWrite,
    /// Commands may do anything
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
    /// Before every command that is not known to be harmless
    Untrusted,
    /// When a command failed in the sandbox
    OnFailure,
    /// When the agent asks for it
    OnRequest,
    /// Never: what is not allowed fails
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

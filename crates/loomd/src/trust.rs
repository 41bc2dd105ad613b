//! `loomd trust`: records in the user's config.toml whether a project is trusted.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use loomd_config::config_toml::TrustLevel;
use loomd_config::{LoadRequest, load};
use loomd_protocol::{AbsolutePathBuf, JsonValue};

use crate::cli::TopOverrides;
use crate::config::{user_file, write_value};
use crate::run;
use crate::setup::Setup;

#[derive(Args)]
#[command(after_help = "\
In a trusted folder the configuration, hooks and rules in its .codex folder apply, commands may write to the workspace
(sandbox workspace-write), and approval is requested when the model asks for it (on-request). In an untrusted folder
every command that is not known to be safe needs approval (untrusted), and .codex is ignored. A folder without a trust
level has the sandbox read-only, and .codex is ignored. config.toml and flags override the sandbox and the approvals.")]
pub struct Trust {
    /// A folder of the project [default: the current one]
    pub folder: Option<PathBuf>,
    /// Record that the project is not trusted
    #[arg(long, conflicts_with = "forget")]
    pub untrusted: bool,
    /// Remove the trust level of the project
    #[arg(long)]
    pub forget: bool,
    /// Print the trust level, and change nothing
    #[arg(long, conflicts_with_all = ["untrusted", "forget"])]
    pub show: bool,
}

pub fn run(top: TopOverrides, arguments: Trust) -> Result<ExitCode> {
    let setup = Setup::new(&top.with(Default::default()))?;
    let folder = AbsolutePathBuf::new(run::folder(arguments.folder.as_deref())?);
    let loaded = load(&LoadRequest { cwd: folder.as_ref(), ..setup.sources.request() })?;
    let project = loaded.project_folders.first().cloned().or(folder).context("the folder has no absolute path")?;
    let project = project.display().to_string();
    let mut out = stdout().lock();
    if arguments.show {
        let level = match loaded.trust {
            Some(TrustLevel::Trusted) => "trusted",
            Some(TrustLevel::Untrusted) => "untrusted",
            None => "no trust level",
        };
        writeln!(out, "{project}: {level}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let (value, told): (JsonValue, _) = match (arguments.untrusted, arguments.forget) {
        (true, _) => ("untrusted".into(), "is not trusted"),
        (_, true) => (JsonValue::Null, "has no trust level any more"),
        _ => ("trusted".into(), "is trusted"),
    };
    if arguments.forget && loaded.trust.is_none() {
        writeln!(out, "{project} has no trust level")?;
        return Ok(ExitCode::SUCCESS);
    }
    let key = format!("projects.{}.trust_level", serde_json::to_string(&project)?);
    write_value(&setup, &key, value)?;
    writeln!(out, "{project} {told} ({})", user_file(&setup).display())?;
    Ok(ExitCode::SUCCESS)
}

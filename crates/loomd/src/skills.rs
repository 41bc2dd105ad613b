//! `loomd skills`: lists the skills of a folder and what is wrong with them.

use std::io::{self, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use loomd_client::protocol::{SkillScope, SkillsListEntry, SkillsListParams};

use crate::cli::{Overrides, TopOverrides};
use crate::run;
use crate::setup::{Setup, block_on, close_client};

#[derive(Args)]
pub struct Skills {
    #[command(subcommand)]
    command: SkillsCommand,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Subcommand)]
enum SkillsCommand {
    /// List the skills that a thread in a folder has, and invalid SKILL.md files
    List {
        /// The folder; the current one if it is not given
        folder: Option<PathBuf>,
        /// Print one JSON object, as `skills/list` returns it
        #[arg(long)]
        json: bool,
    },
}

pub fn run(top: TopOverrides, arguments: Skills) -> Result<ExitCode> {
    let SkillsCommand::List { folder, json } = arguments.command;
    let cwd = run::folder(folder.as_deref())?;
    let setup = Setup::new(&top.with(arguments.overrides))?;
    block_on(async {
        let (client, events) = setup.connect(run::options("loomd-skills")).await?;
        drop(events);
        let listed = client.skills_list(SkillsListParams { cwds: vec![cwd], ..SkillsListParams::default() }).await;
        close_client(&client).await;
        let mut out = stdout().lock();
        for entry in listed?.data {
            if json {
                serde_json::to_writer(&mut out, &entry)?;
                out.write_all(b"\n")?;
            } else {
                print(&mut out, &entry)?;
            }
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    })
}

fn print(out: &mut impl Write, entry: &SkillsListEntry) -> io::Result<()> {
    if entry.skills.is_empty() {
        writeln!(out, "no skills")?;
    }
    for skill in &entry.skills {
        let scope = match skill.scope {
            SkillScope::User => "user",
            SkillScope::Repo => "repo",
            SkillScope::System => "system",
            SkillScope::Admin => "admin",
        };
        let state = if skill.enabled { "" } else { ", disabled" };
        let description = skill.short_description.as_ref().unwrap_or(&skill.description);
        writeln!(out, "{} ({scope}{state})\n  {description}\n  {}", skill.name, skill.path)?;
    }
    if !entry.errors.is_empty() {
        writeln!(out, "\nproblems:")?;
    }
    for error in &entry.errors {
        writeln!(out, "  {}: {}", error.path, error.message)?;
    }
    Ok(())
}

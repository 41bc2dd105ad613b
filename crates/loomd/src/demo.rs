//! `loomd demo`: a whole turn of the built-in rehearsal model, without a key and without the network.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::TopOverrides;
use crate::run::{self, Color, EXIT_STATUS, Prompt, Remarks, Sandbox, Task, ThreadChoice, TurnArgs};

const BEFORE: &str = "a scripted turn of the built-in rehearsal model, in a new folder that is deleted afterwards; no key and \
no network are used";

const AFTER: &str =
    "for a real model run `loomd login` or set OPENAI_API_KEY, then `loomd run \"what does this project do?\"`";

/// The rehearsal's own script.
const PROMPT: &str = "demo";

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Demo {
    /// Steps for the rehearsal in place of the usual ones; `loomd demo help` lists them
    pub steps: Vec<String>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

pub fn run(top: TopOverrides, arguments: Demo) -> Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("loomd-demo-").tempdir().context("cannot create a folder")?;
    let prompt = if arguments.steps.is_empty() { PROMPT.to_owned() } else { arguments.steps.join(" ") };
    let turn = TurnArgs {
        provider: Some("rehearsal".to_owned()),
        model: Some("rehearsal".to_owned()),
        cd: Some(folder.path().to_owned()),
        sandbox: Some(Sandbox::WorkspaceWrite),
        color: arguments.color,
        ..TurnArgs::default()
    };
    let task = Task::Answer { prompt: Prompt::Text(prompt), images: Vec::new(), output_schema: None };
    let remarks = Remarks { before: Some(("demo", BEFORE)), after: Some(AFTER) };
    run::run_turn(top, turn, ThreadChoice::New { ephemeral: true }, task, remarks)
}

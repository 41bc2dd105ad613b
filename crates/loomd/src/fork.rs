//! `loomd fork`: starts a thread with the history of another, and runs a turn in it if there is a prompt.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::cli::TopOverrides;
use crate::run::{self, EXIT_STATUS, Remarks, Task, ThreadChoice, TurnArgs};
use crate::setup::{block_on, close_client};

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub struct Fork {
    /// The thread: its id, a prefix of its id, its name, or `last` for the last used one in this folder
    pub thread: String,
    /// The prompt of a turn in the new thread; without one, the id of the new thread is printed
    pub prompt: Vec<String>,
    /// An image to attach (PNG, JPEG, GIF or WebP); may be repeated
    #[arg(short, long, value_name = "FILE", requires = "prompt")]
    pub image: Vec<PathBuf>,
    #[command(flatten)]
    pub turn: TurnArgs,
}

pub fn run(top: TopOverrides, arguments: Fork) -> Result<ExitCode> {
    let Fork { thread, prompt, image, turn } = arguments;
    let choice = ThreadChoice::Fork(thread);
    if !prompt.is_empty() {
        let (images, prompt) = (run::images(&image)?, run::prompt(&prompt)?);
        let task = Task::Answer { prompt, images, output_schema: None };
        return run::run_turn(top, turn, choice, task, Remarks::default());
    }
    let (request, connection) = run::prepare(top, turn, choice)?;
    block_on(async {
        let (client, events, providers) = connection.open(run::options("loomd-fork")).await?;
        // Without a reader, the queue of events would grow.
        drop(events);
        let opened = request.open(&client, providers.as_ref()).await;
        close_client(&client).await;
        let thread = opened?;
        writeln!(stdout(), "{}", thread.id())?;
        _ = writeln!(stderr(), "resume with `loomd run --resume {}`", thread.id());
        Ok(ExitCode::SUCCESS)
    })
}

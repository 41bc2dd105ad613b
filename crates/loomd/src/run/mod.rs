//! `loomd run`: one turn from the terminal, through a client of a server in this process.

mod args;
mod asker;
mod drive;
mod form;
mod input;
mod keyboard;
mod open;
mod question;
mod reach;
mod screen;
mod view;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use loomd_client::Options;

pub use args::{EXIT_STATUS, Run, Sandbox};
pub use asker::asker;
pub use drive::{Ending, Stage, drive};
pub use input::{folder, input, output_schema, prompt, read_stdin};
pub use keyboard::Keyboard;
pub use open::{Task, Wanted};
pub use reach::{Reach, setup_with_model};
pub use screen::{Color, Screen};
pub use view::{JsonLines, People, View};

use crate::cli::TopOverrides;
use crate::setup::{block_on, leave};

pub fn run(mut top: TopOverrides, arguments: Run) -> Result<ExitCode> {
    let Run { json, color, .. } = arguments;
    let elsewhere = arguments.cd.as_deref().map_or(String::new(), |folder| format!(" --cd {}", quoted(folder)));
    top.profile = arguments.profile.or(top.profile);
    let wanted = Wanted {
        cwd: folder(arguments.cd.as_deref())?,
        task: Task::Answer {
            output_schema: output_schema(arguments.output_schema.as_deref())?,
            input: input(prompt(arguments.prompt)?, &arguments.image)?,
        },
        resume: arguments.resume,
        ephemeral: arguments.ephemeral,
        model: arguments.model,
        provider: arguments.provider,
        sandbox: arguments.sandbox.map(Into::into),
        ask: arguments.ask.map(Into::into),
    };
    let (setup, reach) = setup_with_model(top.with(arguments.overrides), wanted.provider.as_deref(), &wanted.cwd)?;
    block_on(async {
        let (asker, mut questions) = asker();
        let options = options("loomd-run").handler(asker);
        let (client, mut events) = setup.connect(options).await?;
        let (thread, keep) = (wanted.open(&client).await?, !wanted.ephemeral);
        let keyboard = if json { None } else { Keyboard::open() };
        let stage = Stage { client: &client, events: &mut events, questions: &mut questions, keyboard };
        let ended = if json {
            let mut lines = JsonLines::new(io::stdout());
            reach.announce(&mut lines)?;
            drive(wanted.start(&thread).await?, stage, &mut lines).await?
        } else {
            let mut people = People::new(&thread, color);
            reach.announce(&mut people)?;
            let ended = drive(wanted.start(&thread).await?, stage, &mut people).await?;
            if keep && !ended.at_once {
                people.remark(&format!("thread {}\ngo on with `loomd run{elsewhere} --resume last`", thread.id()))?;
            }
            ended
        };
        if !ended.at_once {
            leave(&client).await;
        }
        Ok(ended.ending.into())
    })
}

/// As a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), Into::into)
}

/// Nothing is given up because it is quiet: the server has a clock for whatever it waits for, and people have Ctrl-C.
pub fn options(name: &str) -> Options {
    Options::new(name, env!("CARGO_PKG_VERSION")).turn_timeout(None)
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done => Self::SUCCESS,
            Ending::Failed => Self::FAILURE,
            Ending::Stopped => Self::from(3),
        }
    }
}

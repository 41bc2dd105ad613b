//! `loomd run`: one turn from the terminal, as a client of a server in this process.

mod args;
mod drive;
mod form;
mod handler;
mod input;
mod keyboard;
mod model_access;
mod open;
mod question;
mod screen;
mod view;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use loomd_client::Options;

pub use args::{EXIT_STATUS, Run, Sandbox};
pub use drive::{ExitReason, TurnContext, drive};
pub use handler::prompt_handler;
pub use input::{folder, input, output_schema, prompt, read_stdin};
pub use keyboard::Keyboard;
pub use model_access::{ModelAccess, setup_with_model};
pub use open::{Task, TurnRequest};
pub use screen::{Color, Screen};
pub use view::{JsonView, TextView, View};

use crate::cli::TopOverrides;
use crate::setup::{block_on, close_client};

pub fn run(mut top: TopOverrides, arguments: Run) -> Result<ExitCode> {
    let Run { json, color, .. } = arguments;
    let elsewhere = arguments.cd.as_deref().map_or(String::new(), |folder| format!(" --cd {}", quoted(folder)));
    top.profile = arguments.profile.or(top.profile);
    let request = TurnRequest {
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
    let (setup, access) = setup_with_model(top.with(arguments.overrides), request.provider.as_deref(), &request.cwd)?;
    block_on(async {
        let (prompt_handler, mut questions) = prompt_handler();
        let options = options("loomd-run").handler(prompt_handler);
        let (client, mut events) = setup.connect(options).await?;
        let (thread, keep) = (request.open(&client).await?, !request.ephemeral);
        let keyboard = if json { None } else { Keyboard::open() };
        let stage = TurnContext { client: &client, events: &mut events, questions: &mut questions, keyboard };
        let ended = if json {
            let mut lines = JsonView::new(io::stdout());
            access.announce(&mut lines)?;
            drive(request.start(&thread).await?, stage, &mut lines).await?
        } else {
            let mut text = TextView::new(&thread, color);
            access.announce(&mut text)?;
            let ended = drive(request.start(&thread).await?, stage, &mut text).await?;
            if keep && !ended.at_once {
                text.remark(&format!("thread {}\nresume with `loomd run{elsewhere} --resume last`", thread.id()))?;
            }
            ended
        };
        if !ended.at_once {
            close_client(&client).await;
        }
        Ok(ended.exit.into())
    })
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), Into::into)
}

/// Options without timeouts: the server has a timeout for everything that it waits for, and users have Ctrl-C.
pub fn options(name: &str) -> Options {
    Options::new(name, env!("CARGO_PKG_VERSION")).turn_timeout(None)
}

impl From<ExitReason> for ExitCode {
    fn from(exit: ExitReason) -> Self {
        match exit {
            ExitReason::Done => Self::SUCCESS,
            ExitReason::Failed => Self::FAILURE,
            ExitReason::Stopped => Self::from(3),
        }
    }
}

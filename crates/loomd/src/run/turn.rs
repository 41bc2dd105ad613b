//! One turn at the terminal, for every command that runs one.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use loomd_client::{Options, Thread};
use loomd_protocol::{JsonValue, ReviewTarget};

use super::args::TurnArgs;
use super::connection::Connection;
use super::drive::{ExitReason, TurnContext, TurnOutcome, drive, stop_commands};
use super::handler::prompt_handler;
use super::input::{Prompt, checked, folder, input};
use super::keyboard::Keyboard;
use super::open::{ThreadChoice, ThreadRequest, TurnTask};
use super::screen::{Color, Screen};
use super::view::{JsonView, TextView, View};
use crate::cli::TopOverrides;
use crate::setup::{block_on, close_client};

/// What the turn is to do.
pub enum Task {
    Answer { prompt: Prompt, images: Vec<String>, output_schema: Option<JsonValue> },
    Review(ReviewTarget),
}

/// Lines around a turn.
#[derive(Default)]
pub struct Remarks<'a> {
    /// A coloured word and a text, before the turn.
    pub before: Option<(&'a str, &'a str)>,
    /// After the turn; by default how to resume its thread, if that is stored.
    pub after: Option<&'a str>,
}

/// Returns the thread that the arguments request, and the server that it is in.
pub fn prepare(
    mut top: TopOverrides,
    arguments: TurnArgs,
    choice: ThreadChoice,
) -> Result<(ThreadRequest, Connection)> {
    top.profile = arguments.profile.or(top.profile);
    let mut request = ThreadRequest {
        choice,
        model: arguments.model,
        provider: arguments.provider,
        cwd: folder(arguments.cd.as_deref())?,
        sandbox: arguments.sandbox.map(Into::into),
        ask: arguments.ask.map(Into::into),
        config: None,
        raw_events: !arguments.json,
    };
    let overrides = top.with(arguments.overrides);
    let connection = match &arguments.attach {
        Some(url) => Connection::attached(url, arguments.attach_token_env.as_deref(), &overrides, &mut request)?,
        None => Connection::own(overrides, &mut request)?,
    };
    Ok((request, connection))
}

/// Runs a turn and shows it.
pub fn run_turn(
    top: TopOverrides,
    arguments: TurnArgs,
    choice: ThreadChoice,
    task: Task,
    remarks: Remarks<'_>,
) -> Result<ExitCode> {
    let TurnArgs { json, color, .. } = arguments;
    let hint = remarks.after.map(str::to_owned).or_else(|| resume_hint(&arguments, &choice));
    let resumed = matches!(choice, ThreadChoice::Resume(_));
    let (request, connection) = prepare(top, arguments, choice)?;
    block_on(async {
        let (prompt_handler, mut questions) = prompt_handler();
        let (client, mut events, providers) = connection.open(options("loomd-run").handler(prompt_handler)).await?;
        let thread = request.open(&client, providers.as_ref()).await?;
        let mut keyboard = Keyboard::open();
        let task = match task {
            Task::Answer { prompt, images, output_schema } => {
                let text = match prompt {
                    Prompt::Text(text) => text,
                    Prompt::Ask => ask(&thread, resumed, keyboard.as_mut()).await?,
                };
                TurnTask::Answer { input: input(text, images), output_schema }
            }
            Task::Review(target) => TurnTask::Review(target),
        };
        let stage = TurnContext { client: &client, events: &mut events, questions: &mut questions, keyboard };
        // Those of a running server go on.
        let stops = |ended: &TurnOutcome| match &providers {
            Some(_) if !ended.at_once => ended.running.clone(),
            _ => BTreeSet::new(),
        };
        let ended = if json {
            let mut lines = JsonView::new(io::stdout(), &thread, color);
            let ended = drive(task.start(&thread, &request).await?, stage, &mut lines).await?;
            stop_commands(&client, thread.id(), &mut events, stops(&ended), &mut lines).await?;
            ended
        } else {
            let mut text = TextView::new(&thread, color);
            if let Some((word, notice)) = remarks.before {
                text.warn(word, notice)?;
            }
            let ended = drive(task.start(&thread, &request).await?, stage, &mut text).await?;
            stop_commands(&client, thread.id(), &mut events, stops(&ended), &mut text).await?;
            if let Some(hint) = hint.filter(|_| !ended.at_once) {
                let id = if thread.info().ephemeral { String::new() } else { format!("thread {}\n", thread.id()) };
                text.remark(&format!("{id}{hint}"))?;
            }
            ended
        };
        if !ended.at_once {
            close_client(&client).await;
        }
        Ok(ended.exit.into())
    })
}

/// Reads the prompt from the terminal. Its question goes to stderr if stdout is a pipe or a file.
async fn ask(thread: &Thread, resumed: bool, keyboard: Option<&mut Keyboard>) -> Result<String> {
    let keyboard = keyboard.context("no prompt, and no terminal to ask for one")?;
    let mut screen = match stdout().is_terminal() {
        true => Screen::stdout(Color::Auto),
        false => Screen::stderr(Color::Auto),
    };
    let about = thread.info().name.as_deref().unwrap_or(&thread.info().preview);
    if resumed && !about.trim().is_empty() {
        let about = crate::show::lines(about).join(" ");
        let line = screen.style().cut(&format!("resuming: {about}"), 0);
        screen.print(&format!("{line}\n"))?;
    }
    screen.print("prompt> ")?;
    keyboard.listen();
    let line = keyboard.line().await;
    screen.print("\n")?;
    checked(line.unwrap_or_default())
}

/// How to go on; `None` for a thread that is not stored. The command is valid as printed.
fn resume_hint(arguments: &TurnArgs, choice: &ThreadChoice) -> Option<String> {
    if matches!(choice, ThreadChoice::New { ephemeral: true }) {
        return None;
    }
    let mut command = "loomd run".to_owned();
    if let Some(folder) = &arguments.cd {
        command += &format!(" --cd {}", quoted(folder));
    }
    for (flag, value) in [("--attach", &arguments.attach), ("--attach-token-env", &arguments.attach_token_env)] {
        if let Some(value) = value {
            command += &format!(" {flag} {}", quoted(Path::new(value)));
        }
    }
    Some(format!("resume with `{command} --resume last`"))
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

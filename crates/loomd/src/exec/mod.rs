//! `loomd exec`: one turn or review for a program, with the command line and the events of the TypeScript SDK. Like
//! `loomd run`, but without a keyboard: approvals are declined.

mod args;
mod events;
mod translate;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use loomd_client::Event;
use loomd_protocol::{AskForApproval, ReviewTarget, SandboxMode};

pub use args::Exec;
use args::{Common, ExecCommand, Target};
use events::ThreadEvent;
use translate::Translator;

use crate::cli::{Overrides, TopOverrides};
use crate::find::{LAST, LAST_ANYWHERE};
use crate::run::{
    self, Connection, TextView, ThreadChoice, ThreadRequest, TurnContext, TurnTask, View, drive, prompt_handler,
};
use crate::setup::{Setup, block_on, close_client};

/// The variable with the client name of the calling program.
const ORIGINATOR: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

pub fn run(mut top: TopOverrides, arguments: Exec) -> Result<ExitCode> {
    let Exec { command, common: before, prompt, output_schema, .. } = arguments;
    let answer = |prompt: Option<String>, common: &Common| -> Result<TurnTask> {
        let images = run::images(&common.image)?;
        let output_schema = run::output_schema(output_schema.as_deref())?;
        Ok(TurnTask::Answer { output_schema, input: run::input(run::text(prompt)?, images) })
    };
    let (task, resume, common) = match command {
        None => (answer(prompt, &before)?, None, before),
        Some(ExecCommand::Resume { id, prompt: later, last, all, common }) => {
            let common = before.with(common);
            // With `--last` a single positional argument is the prompt.
            let (id, later) = if last { (None, id.or(later)) } else { (id, later) };
            let name = if all { LAST_ANYWHERE } else { LAST };
            (answer(later.or(prompt), &common)?, Some(id.unwrap_or_else(|| name.to_owned())), common)
        }
        Some(ExecCommand::Review { target, title, common }) => {
            (TurnTask::Review(review_target(target, title)?), None, before.with(common))
        }
    };
    top.profile = arguments.profile.or(top.profile);
    let (sandbox, ask) = permissions(&top, &common, arguments.sandbox.map(Into::into));
    let choice = match resume {
        Some(name) => ThreadChoice::Resume(name),
        None => ThreadChoice::New { ephemeral: common.ephemeral },
    };
    let cwd = run::folder(arguments.cd.as_deref())?;
    let mut request = ThreadRequest {
        choice,
        cwd,
        model: common.model,
        provider: None,
        sandbox,
        ask,
        config: None,
        raw_events: false,
    };
    let overrides = with_folders(top.with(common.overrides), &arguments.add_dir)?;
    let connection = Connection::own(overrides, &mut request)?;
    let (json, last_message) = (common.json, common.output_last_message);
    let originator = std::env::var(ORIGINATOR).ok().filter(|name| !name.is_empty());
    block_on(async {
        let (prompt_handler, mut questions) = prompt_handler();
        let options = run::options(originator.as_deref().unwrap_or("loomd-exec")).handler(prompt_handler);
        let (client, mut events, providers) = connection.open(options).await?;
        let thread = request.open(&client, providers.as_ref()).await?;
        let stage = TurnContext { client: &client, events: &mut events, questions: &mut questions, keyboard: None };
        let ended = if json {
            let mut lines = SdkView::new(io::stdout(), thread.id())?;
            drive(task.start(&thread, &request).await?, stage, &mut lines).await?
        } else {
            let mut text = TextView::new(&thread, arguments.color);
            drive(task.start(&thread, &request).await?, stage, &mut text).await?
        };
        if let Some(file) = last_message {
            let message = ended.message.unwrap_or_default();
            std::fs::write(&file, message).with_context(|| format!("cannot write {}", file.display()))?;
        }
        if !ended.at_once {
            // Programs read no events after the end of the turn.
            run::stop_commands(&client, thread.id(), &mut events, ended.running, &mut run::NoView).await?;
            close_client(&client).await;
        }
        Ok(ended.exit.into())
    })
}

/// Prints one SDK event per line.
struct SdkView<W> {
    out: W,
    thread_id: String,
    translator: Translator,
}

impl<W: Write> SdkView<W> {
    fn new(out: W, thread_id: &str) -> io::Result<Self> {
        let mut lines = Self { out, thread_id: thread_id.to_owned(), translator: Translator::default() };
        lines.print(&ThreadEvent::ThreadStarted { thread_id: thread_id.to_owned() })?;
        Ok(lines)
    }

    fn print(&mut self, event: &ThreadEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl<W: Write> View for SdkView<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if event.thread_id.as_ref().is_some_and(|thread| *thread != self.thread_id) {
            return Ok(());
        }
        let Some(notification) = event.notification() else { return Ok(()) };
        self.translator.events(notification).iter().try_for_each(|event| self.print(event))
    }

    fn warn(&mut self, word: &str, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{word}: {text}")
    }
}

/// The approval and sandbox settings: approval `never` unless the command line has another.
fn permissions(
    top: &TopOverrides,
    common: &Common,
    sandbox: Option<SandboxMode>,
) -> (Option<SandboxMode>, Option<AskForApproval>) {
    if common.dangerously_bypass_approvals_and_sandbox {
        return (Some(SandboxMode::DangerFullAccess), Some(AskForApproval::Never));
    }
    let mut flags = top.overrides.config.iter().chain(&common.overrides.config);
    let chosen = top.ask_for_approval.is_some() || flags.any(|flag| flag.trim_start().starts_with("approval_policy"));
    let ask = (!chosen).then_some(AskForApproval::Never);
    (sandbox.or(common.full_auto.then_some(SandboxMode::WorkspaceWrite)), ask)
}

fn review_target(target: Target, title: Option<String>) -> Result<ReviewTarget> {
    Ok(match target {
        Target { base: Some(branch), .. } => ReviewTarget::BaseBranch { branch: Some(branch) },
        Target { commit: Some(sha), .. } => ReviewTarget::Commit { sha, title },
        Target { uncommitted: true, .. } => ReviewTarget::UncommittedChanges,
        Target { prompt, .. } => ReviewTarget::Custom { instructions: Some(run::text(prompt)?) },
    })
}

/// Adds folders to the configured writable roots.
fn with_folders(mut overrides: Overrides, folders: &[std::path::PathBuf]) -> Result<Overrides> {
    if folders.is_empty() {
        return Ok(overrides);
    }
    let config = Setup::new(&overrides)?.start.settings.config;
    let known = config.sandbox_workspace_write.map(|sandbox| sandbox.writable_roots).unwrap_or_default();
    let mut roots: Vec<String> = known.iter().map(|root| root.display().to_string()).collect();
    for folder in folders {
        roots.push(run::folder(Some(folder))?);
    }
    overrides.config.push(format!("sandbox_workspace_write.writable_roots={roots:?}"));
    Ok(overrides)
}

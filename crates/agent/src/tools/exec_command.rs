//! `exec_command`: a script for a shell. A command that runs longer than the call waits goes on in the background as a
//! terminal session, to which `write_stdin` writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loomd_config::Feature;
use loomd_exec::sandbox::looks_denied;
use loomd_exec::{Command, FinishedCommand, HeadTail, Outcome, ReservedId, SessionEnd, SessionPoll};
use loomd_model::ToolSpec;
use loomd_protocol::{CommandExecutionSource, CommandExecutionStatus, ThreadItem};
use loomd_store::rollout::{EndStatus, Event, ExecCommandEnd, ExecCommandSource, TruncationPolicy};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::shell_command::escalation;
use super::spec::{boolean, function, number, string};
use super::tool::{Tool, ToolFuture, ToolName};
use super::{apply_patch, command};
use crate::guard::{self, Candidate, CommandOptions, CommandPermit, Denial};
use crate::host::ItemEnded;
use crate::network::{self, CommandProxy};
use crate::terminals::{ItemIds, OutputPublisher, TerminalSession};
use crate::tool_call::{Call, Output, ToolResult};
use crate::truncate::{tokens, truncate};

pub(super) struct ExecCommand;

/// The most tokens of output when a call does not name a limit.
pub(super) const MAX_OUTPUT_TOKENS: u64 = 10_000;

#[derive(Deserialize)]
struct Args {
    cmd: String,
    workdir: Option<String>,
    shell: Option<String>,
    login: Option<bool>,
    #[serde(default)]
    tty: bool,
    yield_time_ms: Option<u64>,
    max_output_tokens: Option<u64>,
    #[serde(flatten)]
    options: CommandOptions,
}

impl Tool for ExecCommand {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("exec_command")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let wanted = scope.has(Feature::ShellTool) && scope.has(Feature::UnifiedExec);
        wanted.then(|| {
            let mut properties = vec![
                ("cmd", string("The script, as you would type it.")),
                ("workdir", string("Where it runs; the working directory unless given.")),
                ("shell", string("The shell that runs it; the user's unless given.")),
                ("tty", boolean("Whether it gets a terminal, and can be written to; false unless given.")),
                ("yield_time_ms", number("How long to wait for it before it goes on in the background.")),
                ("max_output_tokens", number("How much of its output to give back at most.")),
                ("login", boolean("Whether the shell is a login shell; true unless given.")),
            ];
            properties.extend(escalation());
            function(
                "exec_command",
                "Runs a script in a shell. Gives back what it printed, or a session id when it is still running.",
                &properties,
                &["cmd"],
            )
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.has(Feature::ShellTool) && scope.has(Feature::UnifiedExec)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let args: Args = call.arguments()?;
            let turn = &cx.action.turn;
            cx.thread.hooks.before_command(&cx.action, &call.id, &args.cmd).await?;
            let login = loomd_exec::login(args.login, turn.profile.config.config.allow_login_shell());
            let login = login.map_err(|refused| refused.to_string())?;
            let shell = match &args.shell {
                Some(name) => cx.action.services.shell().named(name, cx.action.services.search_path()),
                None => cx.action.services.shell().clone(),
            };
            let argv = shell.argv(&args.cmd, login);
            let cwd = command::working_directory(turn, args.workdir.as_deref());
            if let Some(patched) = apply_patch::intercepted(cx, call, &argv, &cwd).await {
                return patched;
            }
            guard::check_options(&cx.action, &args.options, "cannot")?;
            start(cx, call, argv, cwd, &args).await
        })
    }
}

async fn start(cx: &ToolCx, call: &Call, argv: Vec<String>, cwd: PathBuf, args: &Args) -> ToolResult {
    let turn = &cx.action.turn;
    let reserved = cx.thread.terminals.sessions.reserve();
    let mut session = Session {
        call_id: call.id.clone(),
        turn_id: turn.turn_id.clone(),
        id: reserved.id(),
        argv,
        cwd,
        script: args.cmd.clone(),
    };
    turn.started(session.item(None)).await;
    let (argv, cwd) = (session.argv.clone(), session.cwd.clone());
    let candidate =
        Candidate { item_id: &call.id, argv: &argv, cwd: &cwd, options: &args.options, tool: "exec_command" };
    let permit = match guard::clear(&cx.action, &candidate).await {
        Ok(permit) => permit,
        Err(denial) => return declined(cx, &session, denial, args).await,
    };
    let mut notes = permit.notes.clone();
    let mut started = attempt(cx, reserved, &session, &permit, args).await;
    if let StartedProcess::Ended(_, ended) = &started
        && permit.confines_files()
        && denied(ended)
    {
        match guard::retry(&cx.action, &candidate, &permit).await {
            Ok(Some(again)) => {
                notes.extend(again.notes.iter().cloned());
                let reserved = cx.thread.terminals.sessions.reserve();
                session.id = reserved.id();
                started = attempt(cx, reserved, &session, &again, args).await;
            }
            Ok(None) => {}
            Err(denial) => return declined(cx, &session, denial, args).await,
        }
    }
    let max_tokens = args.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS);
    match started {
        StartedProcess::Ended(polled, ended) => {
            turn.completed(session.item(Some(&ended)), Some(session.event(&ended))).await;
            let report = report(&session.argv, polled, max_tokens);
            let mut told = Output { notes, ..report.text().into() };
            // The output of a terminal is not passed to hooks.
            if !args.tty {
                cx.thread.hooks.after_command(&cx.action, &call.id, &args.cmd, &report.output, &mut told).await;
            }
            Ok(told)
        }
        StartedProcess::Running(polled, ended) => {
            let text = report(&session.argv, polled, max_tokens).text();
            leave_running(cx, session, ended);
            Ok(Output { notes, ..text.into() })
        }
        StartedProcess::Stopped(ended) => {
            leave_running(cx, session, ended);
            Err("aborted".into())
        }
        StartedProcess::Failed(output) => {
            let (item, event) = session.failed(&output);
            turn.completed(item, Some(event)).await;
            Err(format!("exec_command failed for `{}`: {output}", args.cmd))
        }
    }
}

/// The state of a command after the time that the call waits for it.
enum StartedProcess {
    Ended(SessionPoll, SessionEnd),
    /// It goes on in the background.
    Running(SessionPoll, oneshot::Receiver<SessionEnd>),
    /// The turn was interrupted; the command goes on in the background.
    Stopped(oneshot::Receiver<SessionEnd>),
    Failed(String),
}

async fn attempt(
    cx: &ToolCx,
    reserved: ReservedId,
    session: &Session,
    permit: &CommandPermit,
    args: &Args,
) -> StartedProcess {
    let turn = &cx.action.turn;
    let ids =
        ItemIds { thread_id: turn.thread_id.clone(), turn_id: turn.turn_id.clone(), item_id: session.call_id.clone() };
    let (feed, ended) = OutputPublisher::new(Arc::clone(&turn.events), ids);
    let confinement = turn.settings.confinement(&turn.profile);
    let launched = confinement.launch(permit.sandbox.as_ref()).and_then(|launch| {
        let env = command::environment(cx, &launch, true, permit.known_safe);
        let program = Command::new(session.argv.clone(), session.cwd.clone(), env);
        let program = cx.thread.shell_memory.apply(&cx.action, &launch, program);
        network::launch(&cx.action, launch, program)
    });
    let program = match launched {
        Ok((program, proxy)) => {
            proxy.into_iter().for_each(CommandProxy::detach);
            program
        }
        Err(error) => return StartedProcess::Failed(error),
    };
    if let Err(error) = turn.begin_effects(&session.call_id).await {
        return StartedProcess::Failed(error);
    }
    let wait = loomd_exec::start_yield(args.yield_time_ms.map(Duration::from_millis));
    // An interrupt does not stop the start: the item has been published, and the session outlives the turn.
    let sessions = &cx.thread.terminals.sessions;
    let launched = match sessions.launch(reserved, &program, args.tty, move |event| feed.take(event)).await {
        Ok(launched) => launched,
        Err(error) => return StartedProcess::Failed(error.to_string()),
    };
    let polled = tokio::select! {
        biased;
        polled = launched.wait(wait) => polled,
        () = turn.cancel.cancelled() => return StartedProcess::Stopped(ended),
    };
    if polled.exit.is_none() {
        return StartedProcess::Running(polled, ended);
    }
    match ended.await {
        Ok(ended) => StartedProcess::Ended(polled, ended),
        Err(_) => StartedProcess::Failed("the end of the command was lost".into()),
    }
}

/// Whether the sandbox seems to have stopped a command.
fn denied(ended: &SessionEnd) -> bool {
    looks_denied(&FinishedCommand {
        outcome: Outcome::Ended(ended.exit),
        stdout: ended.output.clone().into_bytes(),
        stderr: Vec::new(),
        duration: ended.duration,
    })
}

/// Completes the item of a command that was declined.
async fn declined(cx: &ToolCx, session: &Session, denial: Denial, args: &Args) -> ToolResult {
    let (mut item, event) = session.failed(match &denial {
        Denial::Declined(reason) => reason,
        Denial::Cancelled => "",
    });
    if let ThreadItem::CommandExecution { status, aggregated_output, .. } = &mut item {
        *status = CommandExecutionStatus::Declined;
        *aggregated_output = aggregated_output.take().filter(|output| !output.is_empty());
    }
    let event = match event {
        Event::ExecCommandEnd(end) => Event::ExecCommandEnd(ExecCommandEnd { status: EndStatus::Declined, ..end }),
        other => other,
    };
    cx.action.turn.completed(item, Some(event)).await;
    Err(match denial {
        Denial::Declined(reason) => format!("exec_command failed for `{}`: {reason}", args.cmd),
        Denial::Cancelled => "aborted".into(),
    })
}

/// Leaves a command running after its call. The thread records and publishes its end.
fn leave_running(cx: &ToolCx, session: Session, ended: oneshot::Receiver<SessionEnd>) {
    let shown = CancellationToken::new();
    let argv = session.argv.as_slice().into();
    let (item_id, script, cwd) =
        (session.call_id.clone(), session.script.clone(), session.cwd.to_string_lossy().into_owned());
    cx.thread.terminals.opened(session.id, TerminalSession { item_id, argv, script, cwd, shown });
    let (host, terminals) = (Arc::clone(&cx.thread.host), Arc::clone(&cx.thread.terminals));
    let thread = cx.action.turn.thread;
    tokio::spawn(async move {
        if let Ok(ended) = ended.await {
            let (item, event) = (session.item(Some(&ended)), session.event(&ended));
            host.item_ended(thread, ItemEnded { turn_id: session.turn_id.clone(), item, event }).await;
        }
        terminals.closed(session.id);
    });
}

/// A command and its ids.
struct Session {
    call_id: String,
    turn_id: String,
    id: u32,
    argv: Vec<String>,
    cwd: PathBuf,
    /// As the model wrote it.
    script: String,
}

impl Session {
    fn item(&self, ended: Option<&SessionEnd>) -> ThreadItem {
        let status = match ended.map(|ended| ended.exit) {
            None => CommandExecutionStatus::InProgress,
            Some(exit) if exit.code() == 0 => CommandExecutionStatus::Completed,
            Some(_) => CommandExecutionStatus::Failed,
        };
        ThreadItem::CommandExecution {
            id: self.call_id.clone(),
            command: loomd_policy::join(&self.argv),
            cwd: self.cwd.to_string_lossy().into_owned(),
            process_id: Some(self.id.to_string()),
            source: CommandExecutionSource::UnifiedExecStartup,
            status,
            command_actions: loomd_policy::command_actions(&self.argv),
            aggregated_output: ended.map(|ended| text_of(ended.output.clone())).filter(|text| !text.is_empty()),
            exit_code: ended.map(|ended| ended.exit.code()),
            duration_ms: ended.map(|ended| i64::try_from(ended.duration.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    fn event(&self, ended: &SessionEnd) -> Event {
        let code = ended.exit.code();
        self.end(code, &text_of(ended.output.clone()), ended.duration)
    }

    fn failed(&self, output: &str) -> (ThreadItem, Event) {
        let mut item = self.item(None);
        if let ThreadItem::CommandExecution { status, aggregated_output, exit_code, duration_ms, .. } = &mut item {
            *status = CommandExecutionStatus::Failed;
            *aggregated_output = Some(output.into());
            (*exit_code, *duration_ms) = (Some(-1), Some(0));
        }
        (item, self.end(-1, output, Duration::ZERO))
    }

    fn end(&self, exit_code: i32, output: &str, duration: Duration) -> Event {
        Event::ExecCommandEnd(ExecCommandEnd {
            call_id: self.call_id.clone(),
            process_id: Some(self.id.to_string()),
            turn_id: self.turn_id.clone(),
            command: self.argv.clone(),
            cwd: self.cwd.to_string_lossy().into_owned(),
            parsed_cmd: loomd_policy::command_actions(&self.argv).into_iter().map(Into::into).collect(),
            source: ExecCommandSource::UnifiedExecStartup,
            interaction_input: None,
            stdout: String::new(),
            stderr: String::new(),
            aggregated_output: command::stored(output),
            exit_code,
            duration,
            formatted_output: String::new(),
            status: if exit_code == 0 { EndStatus::Completed } else { EndStatus::Failed },
        })
    }
}

fn text_of(output: HeadTail) -> String {
    loomd_exec::to_text(output.into_bytes())
}

/// The output of a session for the model.
pub(super) struct Report {
    /// The header: the command, the wall time, the exit code or session id.
    state: String,
    /// The output, truncated.
    output: String,
}

impl Report {
    pub fn text(&self) -> String {
        format!("{}{}", self.state, self.output)
    }
}

pub(super) fn report(argv: &[String], polled: SessionPoll, max_tokens: u64) -> Report {
    let state = match polled.exit {
        Some(exit) => format!("Process exited with code {}", exit.code()),
        None => format!("Process running with session ID {}", polled.id),
    };
    let output = text_of(polled.output);
    let original = tokens(output.len());
    let lines = output.lines().count();
    let cut = truncate(&output, TruncationPolicy::Tokens(max_tokens));
    let output = if cut.cut { format!("Total output lines: {lines}\n\n{}", cut.text) } else { cut.text };
    let command = loomd_policy::join(argv);
    let chunk = &uuid::Uuid::new_v4().simple().to_string()[..6];
    let seconds = polled.duration.as_secs_f64();
    let state = format!(
        "Command: {command}\nChunk ID: {chunk}\nWall time: {seconds:.4} seconds\n{state}\nOriginal token count: \
         {original}\nOutput:\n"
    );
    Report { state, output }
}

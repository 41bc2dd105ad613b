//! Runs a command for the model as an item that clients see, and what the model is told of it.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use loomd_exec::sandbox::looks_denied;
use loomd_exec::{Command, FinishedCommand, Limits, Outcome, Stream, TextChunks};
use loomd_protocol::{CommandExecutionSource, CommandExecutionStatus, ResponseItem, ThreadItem};
use loomd_store::rollout::{EndStatus, Event, ExecCommandEnd, TruncationPolicy};
use tokio_util::sync::CancellationToken;

use super::cx::ToolCx;
use super::deltas::Deltas;
use crate::confinement::{Launch, VariableRequest};
use crate::guard::{self, Candidate, CommandOptions, Denial};
use crate::hooks;
use crate::network::{self, CommandProxy};
use crate::settings::truncation;
use crate::tool_call::{Call, Output, ToolResult};
use crate::truncate::truncate;
use crate::turn_cx::TurnCx;

/// How much of a command's output is stored with the thread.
const STORED_OUTPUT: u64 = 10_000;

/// A command that is to be run.
pub(crate) struct Task<'a> {
    /// The id of the item.
    pub id: &'a str,
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub timeout: Option<Duration>,
    pub source: CommandExecutionSource,
}

/// A command that has been run, or could not be.
pub(crate) struct Ran {
    pub exit_code: i32,
    pub timed_out: bool,
    pub cancelled: bool,
    pub output: String,
    pub duration: Duration,
    /// It was not run, and `output` says why.
    pub not_run: bool,
    /// What the model should know besides.
    pub notes: Vec<ResponseItem>,
}

/// Runs a command of the model, if that is allowed, and shows it from its start to its end. `None` when the
/// turn was stopped instead.
pub(crate) async fn run_guarded(cx: &ToolCx, task: Task<'_>, options: &CommandOptions) -> Ran {
    let turn = &cx.action.turn;
    turn.started(item(&task, CommandExecutionStatus::InProgress, None)).await;
    let candidate = Candidate { item_id: task.id, argv: &task.argv, cwd: &task.cwd, options, tool: "shell" };
    let clearance = match guard::clear(&cx.action, &candidate).await {
        Ok(clearance) => clearance,
        Err(denial) => return declined(turn, &task, denial).await,
    };
    let confinement = turn.settings.confinement(&turn.profile);
    let launch = confinement.launch(clearance.sandbox.as_ref());
    let mut attempted = attempt(cx, &task, launch, clearance.known_safe).await;
    let mut notes = clearance.notes.clone();
    if clearance.confines_files() && attempted.looks_denied() {
        match guard::retry(&cx.action, &candidate, &clearance).await {
            Ok(Some(again)) => {
                notes.extend(again.notes.iter().cloned());
                let launch = confinement.launch(again.sandbox.as_ref());
                attempted = attempt(cx, &task, launch, again.known_safe).await;
            }
            Ok(None) => {}
            Err(denial) => return declined(turn, &task, denial).await,
        }
    }
    if let Some(refusal) = attempted.refusal {
        return declined(turn, &task, Denial::Declined(refusal)).await;
    }
    let mut ran = attempted.ran;
    ran.notes = notes;
    completed(turn, &task, &ran).await;
    ran
}

/// Runs a command of the user.
pub(crate) async fn run(cx: &ToolCx, task: Task<'_>) -> Ran {
    cx.action.turn.started(item(&task, CommandExecutionStatus::InProgress, None)).await;
    let turn = &cx.action.turn;
    let launch = turn.settings.confinement(&turn.profile).launch_unconfined();
    let ran = attempt(cx, &task, Ok(launch), false).await.ran.stopped_by_user(task.source);
    completed(turn, &task, &ran).await;
    ran
}

/// What came of running a command once.
struct Attempted {
    ran: Ran,
    /// `None` when it could not be started.
    finished: Option<FinishedCommand>,
    /// What of the network was kept from it, if it was not stopped by then.
    refusal: Option<String>,
}

impl Attempted {
    fn looks_denied(&self) -> bool {
        self.refusal.is_none() && self.finished.as_ref().is_some_and(looks_denied)
    }

    fn not_run(why: String) -> Self {
        Self { ran: Ran::not_run(why), finished: None, refusal: None }
    }
}

async fn attempt(cx: &ToolCx, task: &Task<'_>, launch: Result<Launch, String>, known_safe: bool) -> Attempted {
    let turn = &cx.action.turn;
    let launched = launch.and_then(|launch| {
        let env = environment(cx, &launch, false, known_safe);
        let command = Command::new(task.argv.clone(), task.cwd.clone(), env);
        let command = cx.thread.shell_memory.apply(&cx.action, &launch, command);
        network::launch(&cx.action, launch, command)
    });
    let (command, proxy) = match launched {
        Ok(launched) => launched,
        Err(error) => return Attempted::not_run(error),
    };
    let deltas = Deltas::new(turn, task.id);
    let (mut stdout, mut stderr) = (TextChunks::default(), TextChunks::default());
    let work = run_on(&command, task.timeout, proxy.as_ref(), &turn.cancel, |stream, bytes| {
        deltas.push(match stream {
            Stream::Stdout => stdout.push(bytes),
            Stream::Stderr => stderr.push(bytes),
        });
    });
    match deltas.alongside(work).await {
        Ok(finished) => {
            let refusal = proxy.and_then(|proxy| proxy.refusal()).filter(|_| !turn.cancel.is_cancelled());
            Attempted { ran: Ran::of(&finished), finished: Some(finished), refusal }
        }
        Err(error) => Attempted::not_run(error.to_string()),
    }
}

/// Runs a command. While the user is asked about its network, its time stands still.
async fn run_on(
    command: &Command,
    timeout: Option<Duration>,
    proxy: Option<&CommandProxy>,
    cancel: &CancellationToken,
    told: impl FnMut(Stream, &[u8]) + Send,
) -> loomd_exec::Result<FinishedCommand> {
    let limits = Limits { timeout, ..Limits::default() };
    let (Some(proxy), Some(timeout)) = (proxy, timeout) else {
        return loomd_exec::run(command, limits, cancel, told).await;
    };
    let stop = cancel.child_token();
    let mut timed_out = false;
    let work = loomd_exec::run(command, Limits { timeout: None, ..limits }, &stop, told);
    let mut work = pin!(work);
    let mut finished = tokio::select! {
        finished = &mut work => finished?,
        () = proxy.time_is_up(timeout) => {
            timed_out = true;
            stop.cancel();
            work.await?
        }
    };
    if timed_out && !cancel.is_cancelled() && finished.outcome == Outcome::Cancelled {
        finished.outcome = Outcome::TimedOut;
    }
    Ok(finished)
}

async fn completed(turn: &TurnCx, task: &Task<'_>, ran: &Ran) {
    let status = match ran.exit_code {
        0 => CommandExecutionStatus::Completed,
        _ => CommandExecutionStatus::Failed,
    };
    let end = Event::ExecCommandEnd(end(turn, task, ran, None));
    turn.completed(item(task, status, Some(ran)), Some(end)).await;
}

/// Shows that a command was not allowed to run.
async fn declined(turn: &TurnCx, task: &Task<'_>, denial: Denial) -> Ran {
    let (shown, ran) = match denial {
        Denial::Declined(reason) => {
            let ran = Ran::not_run(reason);
            (item(task, CommandExecutionStatus::Declined, Some(&ran)), ran)
        }
        Denial::Cancelled => (item(task, CommandExecutionStatus::Declined, None), Ran::not_run("aborted".into())),
    };
    let end = Event::ExecCommandEnd(end(turn, task, &ran, Some(EndStatus::Declined)));
    turn.completed(shown, Some(end)).await;
    ran
}

impl Ran {
    fn not_run(why: String) -> Self {
        Self {
            exit_code: -1,
            timed_out: false,
            cancelled: false,
            output: why,
            duration: Duration::ZERO,
            not_run: true,
            notes: Vec::new(),
        }
    }

    fn of(finished: &FinishedCommand) -> Self {
        Self {
            exit_code: finished.outcome.exit_code(),
            timed_out: finished.outcome == Outcome::TimedOut,
            cancelled: finished.outcome == Outcome::Cancelled,
            output: finished.text(),
            duration: finished.duration,
            not_run: false,
            notes: Vec::new(),
        }
    }

    /// What is shown of a command that the user ran and stopped.
    fn stopped_by_user(mut self, source: CommandExecutionSource) -> Self {
        if self.cancelled && source == CommandExecutionSource::UserShell {
            self.output = "command aborted by user".into();
        }
        self
    }
}

fn item(task: &Task<'_>, status: CommandExecutionStatus, ran: Option<&Ran>) -> ThreadItem {
    ThreadItem::CommandExecution {
        id: task.id.into(),
        command: loomd_policy::join(&task.argv),
        cwd: task.cwd.to_string_lossy().into_owned(),
        process_id: None,
        source: task.source,
        status,
        command_actions: loomd_policy::command_actions(&task.argv),
        aggregated_output: ran.map(|ran| ran.output.clone()).filter(|output| !output.is_empty()),
        exit_code: ran.map(|ran| ran.exit_code),
        duration_ms: ran.map(|ran| i64::try_from(ran.duration.as_millis()).unwrap_or(i64::MAX)),
    }
}

fn end(turn: &TurnCx, task: &Task<'_>, ran: &Ran, status: Option<EndStatus>) -> ExecCommandEnd {
    let ended = if ran.exit_code == 0 { EndStatus::Completed } else { EndStatus::Failed };
    ExecCommandEnd {
        call_id: task.id.into(),
        process_id: None,
        turn_id: turn.turn_id.clone(),
        command: task.argv.clone(),
        cwd: task.cwd.to_string_lossy().into_owned(),
        parsed_cmd: loomd_policy::command_actions(&task.argv).into_iter().map(Into::into).collect(),
        source: task.source.into(),
        interaction_input: None,
        stdout: String::new(),
        stderr: String::new(),
        aggregated_output: truncate(&ran.output, TruncationPolicy::Bytes(STORED_OUTPUT)).text,
        exit_code: ran.exit_code,
        duration: ran.duration,
        formatted_output: String::new(),
        status: status.unwrap_or(ended),
    }
}

/// Output that is stored with a session's end.
pub(super) fn stored(output: &str) -> String {
    truncate(output, TruncationPolicy::Bytes(STORED_OUTPUT)).text
}

/// What a command of this turn finds in its environment. `session`: it may outlive the call. `known_safe`: it runs
/// unasked because it is known to change nothing.
pub(super) fn environment(cx: &ToolCx, launch: &Launch, session: bool, known_safe: bool) -> loomd_exec::Environment {
    let turn = &cx.action.turn;
    let request = VariableRequest { thread_id: Some(&turn.thread_id), session };
    let mut env = launch.environment(&cx.action.services.environment, &turn.profile.config.config, request);
    if known_safe {
        loomd_policy::restrain_git(&mut env.0);
    }
    env
}

/// The directory of a call: the thread's, or relative to it.
pub(super) fn working_directory(turn: &TurnCx, workdir: Option<&str>) -> PathBuf {
    let workdir = workdir.filter(|workdir| !workdir.is_empty());
    crate::input::resolve(&turn.settings.cwd, workdir.unwrap_or_default()).components().collect()
}

/// What the model is told, in one of the forms below, when hooks have had their say. `line`: the command as
/// the model wrote it.
pub(super) async fn told(
    cx: &ToolCx,
    call: &Call,
    line: &str,
    ran: &Ran,
    form: fn(&TurnCx, &Ran) -> ToolResult,
) -> ToolResult {
    let mut told = form(&cx.action.turn, ran)?;
    if ran.exit_code == 0 && hooks::enabled(&cx.action) {
        let response = truncate(&ran.output, truncation(&cx.action.turn.model)).text;
        cx.thread.hooks.after_command(&cx.action, &call.id, line, &response, &mut told).await;
    }
    Ok(told)
}

/// What the model is told, as text.
pub(super) fn text(turn: &TurnCx, ran: &Ran) -> ToolResult {
    if ran.not_run {
        return Err(ran.output.clone());
    }
    let output = with_timeout(ran);
    let lines = output.lines().count();
    let cut = truncate(&output, truncation(&turn.model));
    let total = if cut.cut { format!("Total output lines: {lines}\n") } else { String::new() };
    let (code, seconds) = (ran.exit_code, seconds(ran.duration));
    let text = format!("Exit code: {code}\nWall time: {seconds} seconds\n{total}Output:\n{}", cut.text);
    Ok(Output { notes: ran.notes.clone(), ..text.into() })
}

/// What the model is told, as JSON.
pub(super) fn json(turn: &TurnCx, ran: &Ran) -> ToolResult {
    if ran.not_run {
        return Err(ran.output.clone());
    }
    let output = with_timeout(ran);
    let lines = output.lines().count();
    let cut = truncate(&output, truncation(&turn.model));
    let output = if cut.cut { format!("Total output lines: {lines}\n\n{}", cut.text) } else { cut.text };
    let seconds = (ran.duration.as_secs_f64() * 10.0).round() / 10.0;
    let answer = serde_json::json!({
        "output": output, "metadata": { "exit_code": ran.exit_code, "duration_seconds": seconds },
    });
    Ok(Output { notes: ran.notes.clone(), ..answer.to_string().into() })
}

fn with_timeout(ran: &Ran) -> String {
    if ran.timed_out {
        format!("command timed out after {} milliseconds\n{}", ran.duration.as_millis(), ran.output)
    } else {
        ran.output.clone()
    }
}

/// With one decimal, and none when that is zero.
fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_secs_f64() * 10.0).round() / 10.0;
    tenths.to_string()
}

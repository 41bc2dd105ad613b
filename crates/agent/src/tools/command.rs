//! Running a command to its end: its item, its approval, and its output for the model.

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

/// The most bytes of a command's output that are recorded.
const STORED_OUTPUT: u64 = 10_000;

/// A command that is to be run.
pub(crate) struct CommandTask<'a> {
    /// The id of the item.
    pub id: &'a str,
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub timeout: Option<Duration>,
    pub source: CommandExecutionSource,
}

/// The result of a command that was run, or was not.
pub(crate) struct CommandResult {
    pub exit_code: i32,
    pub timed_out: bool,
    pub cancelled: bool,
    pub output: String,
    pub duration: Duration,
    /// It was not run, and `output` says why.
    pub not_run: bool,
    /// Further items for the conversation.
    pub notes: Vec<ResponseItem>,
}

/// Runs a command of the model once it is approved, and publishes its item.
pub(crate) async fn run_guarded(cx: &ToolCx, task: CommandTask<'_>, options: &CommandOptions) -> CommandResult {
    let turn = &cx.action.turn;
    turn.started(item(&task, CommandExecutionStatus::InProgress, None)).await;
    let candidate = Candidate { item_id: task.id, argv: &task.argv, cwd: &task.cwd, options, tool: "shell" };
    let permit = match guard::clear(&cx.action, &candidate).await {
        Ok(permit) => permit,
        Err(denial) => return declined(turn, &task, denial).await,
    };
    let confinement = turn.settings.confinement(&turn.profile);
    let launch = confinement.launch(permit.sandbox.as_ref());
    let mut attempted = attempt(cx, &task, launch, permit.known_safe).await;
    let mut notes = permit.notes.clone();
    if permit.confines_files() && attempted.looks_denied() {
        match guard::retry(&cx.action, &candidate, &permit).await {
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
    let mut result = attempted.result;
    result.notes = notes;
    completed(turn, &task, &result).await;
    result
}

/// Runs a command of the user, which needs no approval.
pub(crate) async fn run(cx: &ToolCx, task: CommandTask<'_>) -> CommandResult {
    cx.action.turn.started(item(&task, CommandExecutionStatus::InProgress, None)).await;
    let turn = &cx.action.turn;
    let launch = turn.settings.confinement(&turn.profile).launch_unconfined();
    let result = attempt(cx, &task, Ok(launch), false).await.result.stopped_by_user(task.source);
    completed(turn, &task, &result).await;
    result
}

/// The result of one attempt to run a command.
struct CommandAttempt {
    result: CommandResult,
    /// `None` when it could not be started.
    finished: Option<FinishedCommand>,
    /// Why the proxy blocked its network access, unless the turn was interrupted.
    refusal: Option<String>,
}

impl CommandAttempt {
    fn looks_denied(&self) -> bool {
        self.refusal.is_none() && self.finished.as_ref().is_some_and(looks_denied)
    }

    fn not_run(why: String) -> Self {
        Self { result: CommandResult::not_run(why), finished: None, refusal: None }
    }
}

async fn attempt(
    cx: &ToolCx,
    task: &CommandTask<'_>,
    launch: Result<Launch, String>,
    known_safe: bool,
) -> CommandAttempt {
    let turn = &cx.action.turn;
    let launched = launch.and_then(|launch| {
        let env = environment(cx, &launch, false, known_safe);
        let command = Command::new(task.argv.clone(), task.cwd.clone(), env);
        let command = cx.thread.shell_memory.apply(&cx.action, &launch, command);
        network::launch(&cx.action, launch, command)
    });
    let (command, proxy) = match launched {
        Ok(launched) => launched,
        Err(error) => return CommandAttempt::not_run(error),
    };
    if let Err(error) = turn.begin_effects(task.id).await {
        return CommandAttempt::not_run(error);
    }
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
            CommandAttempt { result: CommandResult::of(&finished), finished: Some(finished), refusal }
        }
        Err(error) => CommandAttempt::not_run(error.to_string()),
    }
}

/// Runs a command. Its timeout does not run while an approval for its network is pending.
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

async fn completed(turn: &TurnCx, task: &CommandTask<'_>, result: &CommandResult) {
    let status = match result.exit_code {
        0 => CommandExecutionStatus::Completed,
        _ => CommandExecutionStatus::Failed,
    };
    let end = Event::ExecCommandEnd(end(turn, task, result, None));
    turn.completed(item(task, status, Some(result)), Some(end)).await;
}

/// Completes the item of a command that was declined.
async fn declined(turn: &TurnCx, task: &CommandTask<'_>, denial: Denial) -> CommandResult {
    let (shown, result) = match denial {
        Denial::Declined(reason) => {
            let result = CommandResult::not_run(reason);
            (item(task, CommandExecutionStatus::Declined, Some(&result)), result)
        }
        Denial::Cancelled => {
            (item(task, CommandExecutionStatus::Declined, None), CommandResult::not_run("aborted".into()))
        }
    };
    let end = Event::ExecCommandEnd(end(turn, task, &result, Some(EndStatus::Declined)));
    turn.completed(shown, Some(end)).await;
    result
}

impl CommandResult {
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

    /// The output of a command of the user that was interrupted.
    fn stopped_by_user(mut self, source: CommandExecutionSource) -> Self {
        if self.cancelled && source == CommandExecutionSource::UserShell {
            self.output = "command aborted by user".into();
        }
        self
    }
}

fn item(task: &CommandTask<'_>, status: CommandExecutionStatus, result: Option<&CommandResult>) -> ThreadItem {
    ThreadItem::CommandExecution {
        id: task.id.into(),
        command: loomd_policy::join(&task.argv),
        cwd: task.cwd.to_string_lossy().into_owned(),
        process_id: None,
        source: task.source,
        status,
        command_actions: loomd_policy::command_actions(&task.argv),
        aggregated_output: result.map(|result| result.output.clone()).filter(|output| !output.is_empty()),
        exit_code: result.map(|result| result.exit_code),
        duration_ms: result.map(|result| i64::try_from(result.duration.as_millis()).unwrap_or(i64::MAX)),
    }
}

fn end(turn: &TurnCx, task: &CommandTask<'_>, result: &CommandResult, status: Option<EndStatus>) -> ExecCommandEnd {
    let ended = if result.exit_code == 0 { EndStatus::Completed } else { EndStatus::Failed };
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
        aggregated_output: truncate(&result.output, TruncationPolicy::Bytes(STORED_OUTPUT)).text,
        exit_code: result.exit_code,
        duration: result.duration,
        formatted_output: String::new(),
        status: status.unwrap_or(ended),
    }
}

/// The output as it is recorded with the end of a session.
pub(super) fn stored(output: &str) -> String {
    truncate(output, TruncationPolicy::Bytes(STORED_OUTPUT)).text
}

/// The environment of a command of this turn. `session`: it may outlive the call. `known_safe`: it needed no approval
/// because it is known to be read-only.
pub(super) fn environment(cx: &ToolCx, launch: &Launch, session: bool, known_safe: bool) -> loomd_exec::Environment {
    let turn = &cx.action.turn;
    let request = VariableRequest { thread_id: Some(&turn.thread_id), session };
    let mut env = launch.environment(&cx.action.services.environment, &turn.profile.config.config, request);
    for (name, value) in cx.thread.skill_needs.variables() {
        env.set(&name, value);
    }
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

/// The output for the model in one of the forms below, after the `PostToolUse` hooks. `line`: the command as the model
/// wrote it.
pub(super) async fn told(
    cx: &ToolCx,
    call: &Call,
    line: &str,
    result: &CommandResult,
    form: fn(&TurnCx, &CommandResult) -> ToolResult,
) -> ToolResult {
    let mut told = form(&cx.action.turn, result)?;
    if result.exit_code == 0 && hooks::enabled(&cx.action) {
        let response = truncate(&result.output, truncation(&cx.action.turn.model)).text;
        cx.thread.hooks.after_command(&cx.action, &call.id, line, &response, &mut told).await;
    }
    Ok(told)
}

/// The output for the model as text.
pub(super) fn text(turn: &TurnCx, result: &CommandResult) -> ToolResult {
    if result.not_run {
        return Err(result.output.clone());
    }
    let output = with_timeout(result);
    let lines = output.lines().count();
    let cut = truncate(&output, truncation(&turn.model));
    let total = if cut.cut { format!("Total output lines: {lines}\n") } else { String::new() };
    let (code, seconds) = (result.exit_code, seconds(result.duration));
    let text = format!("Exit code: {code}\nWall time: {seconds} seconds\n{total}Output:\n{}", cut.text);
    Ok(Output { notes: result.notes.clone(), ..text.into() })
}

/// The output for the model as JSON.
pub(super) fn json(turn: &TurnCx, result: &CommandResult) -> ToolResult {
    if result.not_run {
        return Err(result.output.clone());
    }
    let output = with_timeout(result);
    let lines = output.lines().count();
    let cut = truncate(&output, truncation(&turn.model));
    let output = if cut.cut { format!("Total output lines: {lines}\n\n{}", cut.text) } else { cut.text };
    let seconds = (result.duration.as_secs_f64() * 10.0).round() / 10.0;
    let answer = serde_json::json!({
        "output": output, "metadata": { "exit_code": result.exit_code, "duration_seconds": seconds },
    });
    Ok(Output { notes: result.notes.clone(), ..answer.to_string().into() })
}

fn with_timeout(result: &CommandResult) -> String {
    if result.timed_out {
        format!("command timed out after {} milliseconds\n{}", result.duration.as_millis(), result.output)
    } else {
        result.output.clone()
    }
}

/// With one decimal, and none when that is zero.
fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_secs_f64() * 10.0).round() / 10.0;
    tenths.to_string()
}

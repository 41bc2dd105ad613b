//! Running a command for the model as an item that clients see, and what the model is told of it.

use std::path::PathBuf;
use std::time::Duration;

use loomd_exec::{Command, EnvironmentRequest, Finished, Limits, Outcome, Stream, TextChunks};
use loomd_protocol::{
    AskForApproval, CommandExecutionSource, CommandExecutionStatus, NetworkAccess, SandboxPolicy, ThreadItem,
};
use loomd_store::rollout::{EndStatus, Event, ExecCommandEnd, TruncationPolicy};

use super::deltas::Deltas;
use super::{Answer, ToolCx};
use crate::settings::truncation;
use crate::truncate::truncate;
use crate::turn::TurnCx;

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
    /// It could not even be started.
    pub refused: bool,
}

/// Runs a command and shows it from its start to its end.
pub(crate) async fn run(cx: &ToolCx, task: Task<'_>) -> Ran {
    let turn = &cx.turn;
    turn.started(item(&task, CommandExecutionStatus::InProgress, None)).await;
    let env = environment(cx, false);
    let command = Command::new(task.argv.clone(), task.cwd.clone(), env);
    let limits = Limits { timeout: task.timeout, ..Limits::default() };
    let deltas = Deltas::new(turn, task.id);
    let (mut stdout, mut stderr) = (TextChunks::default(), TextChunks::default());
    let work = loomd_exec::run(&command, limits, &turn.cancel, |stream, bytes| {
        deltas.push(match stream {
            Stream::Stdout => stdout.push(bytes),
            Stream::Stderr => stderr.push(bytes),
        });
    });
    let ran = match deltas.alongside(work).await {
        Ok(finished) => Ran::of(finished).stopped_by_user(task.source),
        Err(error) => Ran {
            exit_code: -1,
            timed_out: false,
            cancelled: false,
            output: error.to_string(),
            duration: Duration::ZERO,
            refused: true,
        },
    };
    let status = match ran.exit_code {
        0 => CommandExecutionStatus::Completed,
        _ => CommandExecutionStatus::Failed,
    };
    turn.completed(item(&task, status, Some(&ran)), Some(Event::ExecCommandEnd(end(turn, &task, &ran)))).await;
    ran
}

impl Ran {
    fn of(finished: Finished) -> Self {
        Self {
            exit_code: finished.outcome.exit_code(),
            timed_out: finished.outcome == Outcome::TimedOut,
            cancelled: finished.outcome == Outcome::Cancelled,
            output: loomd_exec::to_text(finished.aggregated()),
            duration: finished.duration,
            refused: false,
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
        command: loomd_exec::join(&task.argv),
        cwd: task.cwd.to_string_lossy().into_owned(),
        process_id: None,
        source: task.source,
        status,
        command_actions: loomd_exec::command_actions(&task.argv),
        aggregated_output: ran.map(|ran| ran.output.clone()).filter(|output| !output.is_empty()),
        exit_code: ran.map(|ran| ran.exit_code),
        duration_ms: ran.map(|ran| i64::try_from(ran.duration.as_millis()).unwrap_or(i64::MAX)),
    }
}

fn end(turn: &TurnCx, task: &Task<'_>, ran: &Ran) -> ExecCommandEnd {
    ExecCommandEnd {
        call_id: task.id.into(),
        process_id: None,
        turn_id: turn.turn_id.clone(),
        command: task.argv.clone(),
        cwd: task.cwd.to_string_lossy().into_owned(),
        parsed_cmd: loomd_exec::command_actions(&task.argv).into_iter().map(Into::into).collect(),
        source: task.source.into(),
        interaction_input: None,
        stdout: String::new(),
        stderr: String::new(),
        aggregated_output: truncate(&ran.output, TruncationPolicy::Bytes(STORED_OUTPUT)).text,
        exit_code: ran.exit_code,
        duration: ran.duration,
        formatted_output: String::new(),
        status: if ran.exit_code == 0 { EndStatus::Completed } else { EndStatus::Failed },
    }
}

/// Output that is stored with a session's end.
pub(super) fn stored(output: &str) -> String {
    truncate(output, TruncationPolicy::Bytes(STORED_OUTPUT)).text
}

/// What a command of this turn finds in its environment. `session`: it may outlive the call.
pub(super) fn environment(cx: &ToolCx, session: bool) -> loomd_exec::Environment {
    let turn = &cx.turn;
    let request =
        EnvironmentRequest { thread_id: Some(&turn.thread_id), network_disabled: !has_network(turn), session };
    loomd_exec::environment(&cx.services.environment, &turn.profile.config.config.shell_environment_policy, request)
}

fn has_network(turn: &TurnCx) -> bool {
    match &turn.settings.sandbox {
        SandboxPolicy::DangerFullAccess => true,
        SandboxPolicy::ExternalSandbox { network_access } => *network_access == NetworkAccess::Enabled,
        SandboxPolicy::ReadOnly { network_access, .. } | SandboxPolicy::WorkspaceWrite { network_access, .. } => {
            *network_access
        }
    }
}

/// Whether a command may run here. Until commands can be confined and approved, only where neither is needed.
pub(super) fn check_permission(cx: &ToolCx) -> Result<(), String> {
    let settings = &cx.turn.settings;
    let confined = !matches!(settings.sandbox, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. });
    if confined {
        return Err("this command was not run: commands can only run with full access here, because the sandbox is \
                    not available yet. Do what can be done without commands, and tell the user."
            .into());
    }
    if settings.approval_policy == AskForApproval::Untrusted {
        return Err(
            "this command was not run: it needs the user's approval, and approvals are not available yet.".into()
        );
    }
    Ok(())
}

/// The directory of a call: the thread's, or relative to it.
pub(super) fn working_directory(turn: &TurnCx, workdir: Option<&str>) -> PathBuf {
    let workdir = workdir.filter(|workdir| !workdir.is_empty());
    crate::input::resolve(&turn.settings.cwd, workdir.unwrap_or_default()).components().collect()
}

/// What the model is told, as text.
pub(super) fn text(turn: &TurnCx, ran: &Ran) -> Answer {
    if ran.refused {
        return Err(ran.output.clone());
    }
    let output = with_timeout(ran);
    let lines = output.lines().count();
    let cut = truncate(&output, truncation(&turn.model));
    let total = if cut.cut { format!("Total output lines: {lines}\n") } else { String::new() };
    let (code, seconds) = (ran.exit_code, seconds(ran.duration));
    Ok(format!("Exit code: {code}\nWall time: {seconds} seconds\n{total}Output:\n{}", cut.text).into())
}

/// What the model is told, as JSON.
pub(super) fn json(turn: &TurnCx, ran: &Ran) -> Answer {
    if ran.refused {
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
    Ok(answer.to_string().into())
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

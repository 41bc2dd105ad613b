//! `command/exec` and its follow-ups: programs that a client runs beside any thread.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loomd_agent::{ClientCommand, not_spawned};
use loomd_exec::{Exit, Head, Outcome, Process, RETAINED_BYTES, Sink, Size, Stdio, Supervision, supervise, to_text};
use loomd_protocol::{
    CommandExecOutputDeltaNotification, CommandExecOutputStream, CommandExecParams, CommandExecResizeParams,
    CommandExecResizeResponse, CommandExecResponse, CommandExecTerminalSize, CommandExecTerminateParams,
    CommandExecTerminateResponse, CommandExecWriteParams, CommandExecWriteResponse, RpcError, ServerNotification, call,
};
use tokio::time::Instant;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::limits;
use crate::outbound::Notification;
use crate::processes::ProcessError;
use crate::refusals::wire_error;

/// How long a program may take when the client sets no timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `command/exec`: answered when the program has ended and its output has been read.
pub(crate) async fn exec(cx: &Context, params: CommandExecParams) -> Handled<call::CommandExec> {
    let request = ExecRequest::check(&params)?;
    let deadline = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let (command, _proxy) = cx
        .app
        .agent
        .client_command(ClientCommand {
            argv: params.command.clone(),
            cwd: params.cwd.as_ref().map(PathBuf::from),
            env: params.env.clone().unwrap_or_default(),
            sandbox_policy: params.sandbox_policy.clone(),
            permission_profile: params.permission_profile.clone(),
        })
        .map_err(wire_error)?;
    let mut registered = cx.processes.add(params.process_id.clone(), request.takes_input).map_err(refused)?;
    let mut started = Process::start(&command, request.stdio).await.map_err(|error| wire_error(not_spawned(error)))?;
    registered.started(&mut started);
    let sink = |stream| match params.process_id.clone().filter(|_| request.streams) {
        Some(process_id) => OutputSink::Stream(Stream { cx, process_id, stream, left: request.cap, over: false }),
        None => OutputSink::Keep(Head::new(request.cap.unwrap_or(limits::UNCAPPED_OUTPUT))),
    };
    let (mut stdout, mut stderr) = (sink(CommandExecOutputStream::Stdout), sink(CommandExecOutputStream::Stderr));
    let outcome = supervise(
        started.process,
        (started.stdout, started.stderr),
        (&mut stdout, &mut stderr),
        Supervision { deadline, stop: registered.stop(), piece: limits::OUTPUT_PIECE },
    );
    let outcome = outcome.await.map_err(|error| RpcError::internal(format!("failed to wait for command: {error}")))?;
    answer(CommandExecResponse {
        exit_code: exit_code(outcome, params.tty),
        stdout: stdout.into_text(),
        stderr: stderr.into_text(),
    })
}

/// `command/exec/write`
pub(crate) async fn write(cx: &Context, params: CommandExecWriteParams) -> Handled<call::CommandExecWrite> {
    let CommandExecWriteParams { process_id, delta_base64, close_stdin } = params;
    if delta_base64.is_none() && !close_stdin {
        return Err(RpcError::invalid_params("command/exec/write requires deltaBase64 or closeStdin"));
    }
    let bytes = STANDARD
        .decode(delta_base64.unwrap_or_default())
        .map_err(|error| RpcError::invalid_params(format!("invalid deltaBase64: {error}")))?;
    let running = cx.processes.find(&process_id).map_err(refused)?;
    running.write(&process_id, &bytes, close_stdin).await.map_err(refused)?;
    answer(CommandExecWriteResponse {})
}

/// `command/exec/resize`
pub(crate) async fn resize(cx: &Context, params: CommandExecResizeParams) -> Handled<call::CommandExecResize> {
    let size = size(&params.size)?;
    let running = cx.processes.find(&params.process_id).map_err(refused)?;
    running.resize(&params.process_id, size).await.map_err(refused)?;
    answer(CommandExecResizeResponse {})
}

/// `command/exec/terminate`
pub(crate) async fn terminate(cx: &Context, params: CommandExecTerminateParams) -> Handled<call::CommandExecTerminate> {
    cx.processes.find(&params.process_id).map_err(refused)?.stop();
    answer(CommandExecTerminateResponse {})
}

/// The params of `command/exec`, checked.
#[derive(Debug, PartialEq, Eq)]
struct ExecRequest {
    stdio: Stdio,
    takes_input: bool,
    /// Whether output is sent as it comes, instead of with the answer.
    streams: bool,
    /// Bytes of each stream; `None`: no bound was wanted.
    cap: Option<usize>,
    timeout: Option<Duration>,
}

impl ExecRequest {
    fn check(params: &CommandExecParams) -> Result<Self, RpcError> {
        if params.command.is_empty() {
            return Err(RpcError::invalid_request("command must not be empty"));
        }
        if params.size.is_some() && !params.tty {
            return Err(RpcError::invalid_params("command/exec size requires tty: true"));
        }
        let both = |one: &str, other: &str| {
            RpcError::invalid_params(format!("command/exec cannot set both {one} and {other}"))
        };
        let cap = match (params.output_bytes_cap, params.disable_output_cap) {
            (Some(_), true) => return Err(both("outputBytesCap", "disableOutputCap")),
            (None, true) => None,
            (cap, false) => Some(cap.unwrap_or(RETAINED_BYTES)),
        };
        let timeout = match (params.timeout_ms, params.disable_timeout) {
            (Some(_), true) => return Err(both("timeoutMs", "disableTimeout")),
            (None, true) => None,
            (None, false) => Some(TIMEOUT),
            (Some(ms), false) => Some(Duration::from_millis(u64::try_from(ms).map_err(|_| {
                RpcError::invalid_params(format!("command/exec timeoutMs must be non-negative, got {ms}"))
            })?)),
        };
        let size = params.size.as_ref().map(size).transpose()?;
        let streams = params.tty || params.stream_stdout_stderr;
        let takes_input = params.tty || params.stream_stdin;
        if (streams || takes_input) && params.process_id.is_none() {
            let message = "command/exec tty or streaming requires a client-supplied processId";
            return Err(RpcError::invalid_request(message));
        }
        let stdio = match params.tty {
            true => Stdio::Terminal(size.unwrap_or_default()),
            false => Stdio::Pipes { stdin: takes_input },
        };
        Ok(Self { stdio, takes_input, streams, cap, timeout })
    }
}

fn size(size: &CommandExecTerminalSize) -> Result<Size, RpcError> {
    match size {
        CommandExecTerminalSize { rows: 0, .. } | CommandExecTerminalSize { cols: 0, .. } => {
            Err(RpcError::invalid_params("command/exec size rows and cols must be greater than 0"))
        }
        CommandExecTerminalSize { rows, cols } => Ok(Size { rows: *rows, cols: *cols }),
    }
}

fn refused(error: ProcessError) -> RpcError {
    RpcError::invalid_request(error.to_string())
}

/// The exit code of a program on a terminal that the client terminated: killed by signal 9, as shells report it.
const TERMINATED: i32 = 128 + 9;

/// A death by signal has no code of its own here.
fn exit_code(outcome: Outcome, tty: bool) -> i32 {
    match outcome {
        Outcome::Ended(Exit::Code(code)) => code,
        Outcome::TimedOut => outcome.exit_code(),
        Outcome::Cancelled if tty => TERMINATED,
        Outcome::Ended(Exit::Signal(_)) if tty => 1,
        Outcome::Ended(Exit::Signal(_)) | Outcome::Cancelled => -1,
    }
}

/// Where the output of one stream goes.
enum OutputSink<'a> {
    /// Kept for the answer.
    Keep(Head),
    /// Sent as notifications.
    Stream(Stream<'a>),
}

impl Sink for OutputSink<'_> {
    async fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Keep(head) => head.push(bytes),
            Self::Stream(stream) => stream.take(bytes).await,
        }
    }
}

impl OutputSink<'_> {
    fn into_text(self) -> String {
        match self {
            Self::Keep(head) => to_text(head.bytes),
            Self::Stream(_) => String::new(),
        }
    }
}

/// A stream that is sent as notifications. Output beyond its cap is read, so that the program can go on, and dropped.
struct Stream<'a> {
    cx: &'a Context,
    process_id: String,
    stream: CommandExecOutputStream,
    left: Option<usize>,
    over: bool,
}

impl Stream<'_> {
    async fn take(&mut self, mut bytes: &[u8]) {
        if self.over {
            return;
        }
        if let Some(left) = &mut self.left {
            bytes = &bytes[..bytes.len().min(*left)];
            *left -= bytes.len();
            self.over = *left == 0;
        }
        let delta = ServerNotification::CommandExecOutputDelta(CommandExecOutputDeltaNotification {
            process_id: self.process_id.clone(),
            stream: self.stream,
            delta_base64: STANDARD.encode(bytes),
            cap_reached: self.over,
        });
        if !self.cx.client.opted_out.contains(delta.method()) {
            self.cx.outbound.send_at_its_pace(&Notification::new(delta)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(params: serde_json::Value, expected: Result<ExecRequest, (i64, &str)>) {
        let request = ExecRequest::check(&serde_json::from_value(params.clone()).unwrap());
        assert_eq!(
            request.map_err(|error| (error.code, error.message)),
            expected.map_err(|(c, m)| (c, m.into())),
            "{params}"
        );
    }

    #[test]
    fn invalid_params_are_refused_with_the_first_error() {
        let plain = || ExecRequest {
            stdio: Stdio::Pipes { stdin: false },
            takes_input: false,
            streams: false,
            cap: Some(RETAINED_BYTES),
            timeout: Some(TIMEOUT),
        };
        let command = |mut more: serde_json::Value| {
            more["command"] = json!(["true"]);
            more
        };
        check(command(json!({})), Ok(plain()));
        let free = ExecRequest { cap: None, timeout: None, ..plain() };
        check(command(json!({"disableOutputCap": true, "disableTimeout": true})), Ok(free));
        let none = ExecRequest { cap: Some(0), timeout: Some(Duration::ZERO), ..plain() };
        check(command(json!({"outputBytesCap": 0, "timeoutMs": 0})), Ok(none));
        let fed = ExecRequest { stdio: Stdio::Pipes { stdin: true }, takes_input: true, ..plain() };
        check(command(json!({"processId": "", "streamStdin": true})), Ok(fed));
        let terminal = |size| ExecRequest { stdio: Stdio::Terminal(size), takes_input: true, streams: true, ..plain() };
        check(command(json!({"processId": "p", "tty": true})), Ok(terminal(Size { rows: 24, cols: 80 })));
        let sized = command(json!({"processId": "p", "tty": true, "size": {"rows": 1, "cols": 2}}));
        check(sized, Ok(terminal(Size { rows: 1, cols: 2 })));

        let all_wrong = |tty| {
            json!({
                "tty": tty, "size": {"rows": 0, "cols": 1}, "outputBytesCap": 1, "disableOutputCap": true,
                "timeoutMs": -1, "disableTimeout": true,
            })
        };
        let mut wrong = all_wrong(false);
        wrong["command"] = json!([]);
        check(wrong, Err((-32600, "command must not be empty")));
        check(command(all_wrong(false)), Err((-32602, "command/exec size requires tty: true")));
        let mut wrong = command(all_wrong(true));
        for (gone, message) in [
            ("disableOutputCap", "command/exec cannot set both outputBytesCap and disableOutputCap"),
            ("disableTimeout", "command/exec cannot set both timeoutMs and disableTimeout"),
            ("timeoutMs", "command/exec timeoutMs must be non-negative, got -1"),
            ("size", "command/exec size rows and cols must be greater than 0"),
        ] {
            check(wrong.clone(), Err((-32602, message)));
            wrong.as_object_mut().unwrap().remove(gone);
        }
        check(wrong, Err((-32600, "command/exec tty or streaming requires a client-supplied processId")));
    }

    #[test]
    fn a_death_by_signal_exits_with_minus_one_on_pipes_and_with_one_or_137_on_terminals() {
        for (outcome, expected) in [
            (Outcome::Ended(Exit::Code(7)), (7, 7)),
            (Outcome::Ended(Exit::Signal(9)), (-1, 1)),
            (Outcome::Cancelled, (-1, 137)),
            (Outcome::TimedOut, (124, 124)),
        ] {
            assert_eq!((exit_code(outcome, false), exit_code(outcome, true)), expected, "{outcome:?}");
        }
    }
}

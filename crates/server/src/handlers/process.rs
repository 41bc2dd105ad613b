//! `process/*`: programs that a client runs on the host, outside of threads and sandboxes. The request that starts a
//! program is answered when the program runs; its end is a notification. Programs end with their connection.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loomd_exec::{
    Command, Environment, Exit, Head, Outcome, Process, RETAINED_BYTES, Sink, Size, StartedProcess, Stdio, Supervision,
    supervise, to_text,
};
use loomd_protocol::{
    ProcessExitedNotification, ProcessKillParams, ProcessKillResponse, ProcessOutputDeltaNotification,
    ProcessOutputStream, ProcessResizePtyParams, ProcessResizePtyResponse, ProcessSpawnParams, ProcessSpawnResponse,
    ProcessTerminalSize, ProcessWriteStdinParams, ProcessWriteStdinResponse, RpcError, ServerNotification, call,
};
use tokio::time::Instant;
use tracing::info;

use crate::answer::{Handled, answer};
use crate::connections::Client;
use crate::context::Context;
use crate::limits;
use crate::outbound::{Notification, OutboundQueue};
use crate::processes::{ProcessError, ProcessRegistration};

/// The exit code of a program that a signal ended is this and the signal's number.
const SIGNALLED: i32 = 128;

/// The signal that ends a program that is stopped.
const KILLED: i32 = 9;

/// `process/spawn`: answered when the program runs.
pub(crate) async fn spawn(cx: &Context, params: ProcessSpawnParams) -> Handled<call::ProcessSpawn> {
    let request = SpawnRequest::check(&params)?;
    if !cx.may_run_processes {
        return Err(RpcError::invalid_request(
            "process/spawn is disabled for remote connections; set `remote_processes` in `[loomd]` to allow it",
        ));
    }
    let ProcessSpawnParams { command, cwd, process_handle: handle, env, .. } = params;
    let mut environment = Environment::of_this_process();
    for (name, value) in env.into_iter().flatten() {
        match value {
            Some(value) => environment.set(name, value),
            None => environment.remove(&name),
        }
    }
    let mut registered = cx.spawned.add(Some(handle.clone()), request.takes_input).map_err(refused)?;
    let deadline = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    // The arguments may hold secrets.
    let program = command.first().cloned().unwrap_or_default();
    let arguments = command.len().saturating_sub(1);
    let command = Command::new(command, cwd.into_path_buf(), environment);
    let mut started = Process::start(&command, request.stdio).await.map_err(not_spawned)?;
    registered.started(&mut started);
    info!(target: "audit", client = cx.client.identity.name, handle, program, arguments, "process/spawn");
    let running =
        RunningProgram { client: Arc::clone(&cx.client), outbound: Arc::clone(&cx.outbound), handle, request };
    // The answer goes before the notifications. The program ends with the connection, whose end stops all of them.
    let (responder, answer) = cx.answer.responder();
    responder.send(Ok(ProcessSpawnResponse {}));
    tokio::spawn(running.supervise(registered, started, deadline));
    Ok(answer)
}

/// `process/writeStdin`
pub(crate) async fn write_stdin(cx: &Context, params: ProcessWriteStdinParams) -> Handled<call::ProcessWriteStdin> {
    let ProcessWriteStdinParams { process_handle: handle, delta_base64, close_stdin } = params;
    if delta_base64.is_none() && !close_stdin {
        return Err(RpcError::invalid_params("process/writeStdin requires deltaBase64 or closeStdin"));
    }
    let bytes = STANDARD
        .decode(delta_base64.unwrap_or_default())
        .map_err(|error| RpcError::invalid_params(format!("invalid deltaBase64: {error}")))?;
    let running = cx.spawned.find(&handle).map_err(refused)?;
    running.write(&handle, &bytes, close_stdin).await.map_err(refused)?;
    answer(ProcessWriteStdinResponse {})
}

/// `process/resizePty`
pub(crate) async fn resize_pty(cx: &Context, params: ProcessResizePtyParams) -> Handled<call::ProcessResizePty> {
    let size = size(&params.size)?;
    let running = cx.spawned.find(&params.process_handle).map_err(refused)?;
    running.resize(&params.process_handle, size).await.map_err(refused)?;
    answer(ProcessResizePtyResponse {})
}

/// `process/kill`
pub(crate) async fn kill(cx: &Context, params: ProcessKillParams) -> Handled<call::ProcessKill> {
    cx.spawned.find(&params.process_handle).map_err(refused)?.stop();
    answer(ProcessKillResponse {})
}

/// The params of `process/spawn`, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpawnRequest {
    stdio: Stdio,
    takes_input: bool,
    /// Whether output is sent as it comes, instead of at the end.
    streams: bool,
    /// Bytes of each stream.
    cap: usize,
    timeout: Option<Duration>,
}

impl SpawnRequest {
    fn check(params: &ProcessSpawnParams) -> Result<Self, RpcError> {
        if params.command.is_empty() {
            return Err(RpcError::invalid_request("command must not be empty"));
        }
        if params.process_handle.is_empty() {
            return Err(RpcError::invalid_request("processHandle must not be empty"));
        }
        if params.size.is_some() && !params.tty {
            return Err(RpcError::invalid_params("process/spawn size requires tty: true"));
        }
        let timeout = params.timeout_ms.map(|ms| {
            u64::try_from(ms).map(Duration::from_millis).map_err(|_| {
                RpcError::invalid_params(format!("process/spawn timeoutMs must be non-negative, got {ms}"))
            })
        });
        let size = params.size.as_ref().map(size).transpose()?;
        let takes_input = params.tty || params.stream_stdin;
        Ok(Self {
            stdio: match params.tty {
                true => Stdio::Terminal(size.unwrap_or_default()),
                false => Stdio::Pipes { stdin: takes_input },
            },
            takes_input,
            streams: params.tty || params.stream_stdout_stderr,
            cap: params.output_bytes_cap.unwrap_or(RETAINED_BYTES),
            timeout: timeout.transpose()?,
        })
    }
}

fn size(size: &ProcessTerminalSize) -> Result<Size, RpcError> {
    match size {
        ProcessTerminalSize { rows: 0, .. } | ProcessTerminalSize { cols: 0, .. } => {
            Err(RpcError::invalid_params("process size rows and cols must be greater than 0"))
        }
        ProcessTerminalSize { rows, cols } => Ok(Size { rows: *rows, cols: *cols }),
    }
}

fn not_spawned(error: loomd_exec::Error) -> RpcError {
    let reason = match error {
        loomd_exec::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    RpcError::internal(format!("failed to spawn process: {reason}"))
}

/// The errors of these methods name handles, not process ids.
fn refused(error: ProcessError) -> RpcError {
    let quoted = |handle: &str| serde_json::Value::from(handle).to_string();
    RpcError::invalid_request(match &error {
        ProcessError::Duplicate(handle) => format!("duplicate active process handle: {}", quoted(handle)),
        ProcessError::Unknown(handle) | ProcessError::Ended(handle) => {
            format!("no active process for process handle {}", quoted(handle))
        }
        ProcessError::NoInput => "stdin streaming is not enabled for this process".into(),
        ProcessError::InputClosed | ProcessError::Resize(_) => error.to_string(),
    })
}

/// A program that runs, with where its output goes.
struct RunningProgram {
    client: Arc<Client>,
    outbound: Arc<OutboundQueue>,
    handle: String,
    request: SpawnRequest,
}

impl RunningProgram {
    /// Runs the program to its end and sends its output, its handle being free before its end is sent.
    async fn supervise(self, registered: ProcessRegistration, started: StartedProcess, deadline: Option<Instant>) {
        let sink = |stream| OutputSink {
            program: &self,
            stream,
            kept: Head::new(if self.request.streams { 0 } else { self.request.cap }),
            left: self.request.cap,
            over: false,
        };
        let (mut stdout, mut stderr) = (sink(ProcessOutputStream::Stdout), sink(ProcessOutputStream::Stderr));
        let outcome = supervise(
            started.process,
            (started.stdout, started.stderr),
            (&mut stdout, &mut stderr),
            Supervision { deadline, stop: registered.stop(), piece: limits::OUTPUT_PIECE },
        );
        let exit_code = match outcome.await {
            Ok(outcome) => exit_code(outcome),
            Err(error) => {
                tracing::warn!(handle = self.handle, %error, "the end of a program is unknown");
                -1
            }
        };
        let (stdout_cap_reached, stderr_cap_reached) = (stdout.over, stderr.over);
        let (stdout, stderr) = (to_text(stdout.kept.bytes), to_text(stderr.kept.bytes));
        drop(registered);
        self.send(ServerNotification::ProcessExited(ProcessExitedNotification {
            process_handle: self.handle.clone(),
            exit_code,
            stdout,
            stdout_cap_reached,
            stderr,
            stderr_cap_reached,
            output_drain_timed_out: Some(false),
        }))
        .await;
    }

    async fn send(&self, notification: ServerNotification) {
        if !self.client.opted_out.contains(notification.method()) {
            self.outbound.send_at_its_pace(&Notification::new(notification)).await;
        }
    }
}

fn exit_code(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Ended(Exit::Code(code)) => code,
        Outcome::Ended(Exit::Signal(signal)) => SIGNALLED + signal,
        Outcome::Cancelled => SIGNALLED + KILLED,
        Outcome::TimedOut => outcome.exit_code(),
    }
}

/// One stream of a program. Output beyond its cap is read, so that the program can go on, and dropped.
struct OutputSink<'a> {
    program: &'a RunningProgram,
    stream: ProcessOutputStream,
    kept: Head,
    left: usize,
    over: bool,
}

impl Sink for OutputSink<'_> {
    async fn take(&mut self, bytes: &[u8]) {
        let room = bytes.len().min(self.left);
        let cut = room < bytes.len();
        let was_over = self.over;
        self.over |= cut;
        self.left -= room;
        if !self.program.request.streams {
            return self.kept.push(&bytes[..room]);
        }
        if was_over || (room == 0 && !cut) {
            return;
        }
        let delta = ServerNotification::ProcessOutputDelta(ProcessOutputDeltaNotification {
            process_handle: self.program.handle.clone(),
            stream: self.stream,
            delta_base64: STANDARD.encode(&bytes[..room]),
            cap_reached: self.over,
        });
        self.program.send(delta).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(params: serde_json::Value) -> Result<SpawnRequest, (i64, String)> {
        let mut whole = json!({"command": ["true"], "cwd": "/", "processHandle": "p"});
        for (name, value) in params.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let request = SpawnRequest::check(&serde_json::from_value(whole).unwrap());
        request.map_err(|error| (error.code, error.message))
    }

    #[test]
    fn invalid_params_are_refused_with_their_names() {
        for (params, code, message) in [
            (json!({"command": []}), -32600, "command must not be empty"),
            (json!({"processHandle": ""}), -32600, "processHandle must not be empty"),
            (json!({"size": {"rows": 2, "cols": 2}}), -32602, "process/spawn size requires tty: true"),
            (json!({"timeoutMs": -1}), -32602, "process/spawn timeoutMs must be non-negative, got -1"),
            (
                json!({"tty": true, "size": {"rows": 0, "cols": 2}}),
                -32602,
                "process size rows and cols must be greater than 0",
            ),
        ] {
            assert_eq!(check(params), Err((code, message.into())));
        }
    }

    #[test]
    fn a_terminal_streams_both_ways() {
        let terminal = check(json!({"tty": true, "size": {"rows": 3, "cols": 4}, "timeoutMs": 0})).unwrap();
        let expected = SpawnRequest {
            stdio: Stdio::Terminal(Size { rows: 3, cols: 4 }),
            takes_input: true,
            streams: true,
            cap: RETAINED_BYTES,
            timeout: Some(Duration::ZERO),
        };
        assert_eq!(terminal, expected);
        let plain = check(json!({"outputBytesCap": 7})).unwrap();
        let pipes = Stdio::Pipes { stdin: false };
        assert_eq!(plain, SpawnRequest { stdio: pipes, takes_input: false, streams: false, cap: 7, timeout: None });
    }

    #[test]
    fn a_killed_program_has_the_code_of_a_shell() {
        for (outcome, expected) in [
            (Outcome::Ended(Exit::Code(7)), 7),
            (Outcome::Ended(Exit::Signal(15)), 143),
            (Outcome::Cancelled, 137),
            (Outcome::TimedOut, 124),
        ] {
            assert_eq!(exit_code(outcome), expected, "{outcome:?}");
        }
    }
}

//! Runs one command from start to end, with a callback for its output, bounded capture, and its exit status.

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::Instant as Deadline;
use tokio_util::sync::CancellationToken;

use crate::capture::{Head, RETAINED_BYTES, shares};
use crate::process::{Exit, Process, StartedProcess, Stdio};
use crate::supervise::{Sink, Supervision, supervise};
use crate::text::to_text;
use crate::{Command, Result};

/// The largest chunk of output, which is one read.
pub(crate) const CHUNK_BYTES: usize = 8192;
/// Chunks of one stream beyond this many are captured but not passed to the callback.
pub(crate) const MAX_CALLBACK_CHUNKS: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `None`: no timeout.
    pub timeout: Option<Duration>,
    /// The most bytes that are retained of each stream, from its start.
    pub retained: usize,
}

impl Limits {
    /// The timeout of the model's commands when a call names none.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: Some(Self::TIMEOUT), retained: RETAINED_BYTES }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ended(Exit),
    TimedOut,
    Cancelled,
}

impl Outcome {
    /// 124 after a timeout, as the `timeout` program has it; -1 when cancelled; 128 and the signal's number
    /// when a signal ended it.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Ended(exit) => exit.code(),
            Self::TimedOut => 124,
            Self::Cancelled => -1,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    pub outcome: Outcome,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub duration: Duration,
}

impl FinishedCommand {
    pub fn aggregated(&self) -> Vec<u8> {
        shares(&self.stdout, &self.stderr).concat()
    }

    /// Both streams as text, stdout first; each may be in an encoding of its own.
    pub fn text(&self) -> String {
        shares(&self.stdout, &self.stderr).map(|stream| to_text(stream.to_vec())).concat()
    }
}

/// Runs a command with empty input. `on_output` gets the output in chunks as it comes. After a timeout or a
/// cancellation the whole process group is killed, and what was read until then is kept; dropping the future
/// kills it too.
pub async fn run(
    command: &Command,
    limits: Limits,
    cancel: &CancellationToken,
    on_output: impl FnMut(Stream, &[u8]) + Send,
) -> Result<FinishedCommand> {
    run_fed(command, None, limits, cancel, on_output).await
}

/// Runs a command with this input on its stdin. A command that does not read it is no error.
pub async fn run_with_input(
    command: &Command,
    input: &[u8],
    limits: Limits,
    cancel: &CancellationToken,
) -> Result<FinishedCommand> {
    run_fed(command, Some(input), limits, cancel, |_, _| {}).await
}

async fn run_fed(
    command: &Command,
    input: Option<&[u8]>,
    limits: Limits,
    cancel: &CancellationToken,
    on_output: impl FnMut(Stream, &[u8]) + Send,
) -> Result<FinishedCommand> {
    let begun = Instant::now();
    let deadline = limits.timeout.and_then(|timeout| Deadline::now().checked_add(timeout));
    let started = Process::start(command, Stdio::Pipes { stdin: input.is_some() }).await?;
    let StartedProcess { process, stdin, stdout, stderr } = started;
    let on_output = Mutex::new(on_output);
    let [mut out, mut err] = [Stream::Stdout, Stream::Stderr].map(|stream| StreamCapture {
        bytes: Head::new(limits.retained),
        stream,
        pieces: 0,
        on_output: &on_output,
    });
    let supervision = Supervision { deadline, stop: cancel, piece: CHUNK_BYTES };
    let fed = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program need not read its input.
            _ = stdin.write_all(input).await;
        }
        pending::<Infallible>().await
    };
    let outcome = tokio::select! {
        outcome = supervise(process, (stdout, stderr), (&mut out, &mut err), supervision) => outcome?,
        never = fed => match never {},
    };
    Ok(FinishedCommand { outcome, stdout: out.bytes.bytes, stderr: err.bytes.bytes, duration: begun.elapsed() })
}

/// One output stream: captured up to its limit, and passed to the callback.
struct StreamCapture<'a, F> {
    bytes: Head,
    stream: Stream,
    pieces: usize,
    on_output: &'a Mutex<F>,
}

impl<F: FnMut(Stream, &[u8]) + Send> Sink for StreamCapture<'_, F> {
    async fn take(&mut self, piece: &[u8]) {
        self.bytes.push(piece);
        self.pieces += 1;
        if self.pieces <= MAX_CALLBACK_CHUNKS {
            let mut on_output = self.on_output.lock();
            on_output(self.stream, piece);
        }
    }
}

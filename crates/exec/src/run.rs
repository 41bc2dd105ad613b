//! One command from start to end: its output as it comes, what is kept of it, and how it ended.

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::Instant as Deadline;
use tokio_util::sync::CancellationToken;

use crate::capture::{Head, RETAINED_BYTES, shares};
use crate::process::{Exit, Process, Started, Stdio};
use crate::supervise::{Sink, Supervision, supervise};
use crate::text::to_text;
use crate::{Command, Result};

/// The most that one read, and so one piece of output, holds.
pub(crate) const CHUNK_BYTES: usize = 8192;
/// Pieces of one stream beyond this many are kept but no longer told.
pub(crate) const TOLD_CHUNKS: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What bounds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// How much is kept of each stream, from its beginning.
    pub retained: usize,
}

impl Limits {
    /// How long the model's commands may take when it does not say.
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
pub struct Finished {
    pub outcome: Outcome,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub duration: Duration,
}

impl Finished {
    pub fn aggregated(&self) -> Vec<u8> {
        shares(&self.stdout, &self.stderr).concat()
    }

    /// Both streams as text, stdout first; each may be in an encoding of its own.
    pub fn text(&self) -> String {
        shares(&self.stdout, &self.stderr).map(|stream| to_text(stream.to_vec())).concat()
    }
}

/// Runs a command with empty input. `told` gets its output piece by piece as it comes. After a timeout or a
/// cancellation the whole process group is killed, and what was read until then is kept; dropping the future
/// kills it too.
pub async fn run(
    command: &Command,
    limits: Limits,
    cancel: &CancellationToken,
    told: impl FnMut(Stream, &[u8]) + Send,
) -> Result<Finished> {
    run_fed(command, None, limits, cancel, told).await
}

/// Runs a command that is told something on its stdin. Whether it listens is its own matter.
pub async fn run_with_input(
    command: &Command,
    input: &[u8],
    limits: Limits,
    cancel: &CancellationToken,
) -> Result<Finished> {
    run_fed(command, Some(input), limits, cancel, |_, _| {}).await
}

async fn run_fed(
    command: &Command,
    input: Option<&[u8]>,
    limits: Limits,
    cancel: &CancellationToken,
    told: impl FnMut(Stream, &[u8]) + Send,
) -> Result<Finished> {
    let begun = Instant::now();
    let deadline = limits.timeout.and_then(|timeout| Deadline::now().checked_add(timeout));
    let started = Process::start(command, Stdio::Pipes { stdin: input.is_some() }).await?;
    let Started { process, stdin, stdout, stderr } = started;
    let told = Mutex::new(told);
    let [mut out, mut err] = [Stream::Stdout, Stream::Stderr].map(|stream| Kept {
        bytes: Head::new(limits.retained),
        stream,
        pieces: 0,
        told: &told,
    });
    let supervision = Supervision { deadline, stop: cancel, piece: CHUNK_BYTES };
    let fed = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program that does not read its input has a reason.
            _ = stdin.write_all(input).await;
        }
        pending::<Infallible>().await
    };
    let outcome = tokio::select! {
        outcome = supervise(process, (stdout, stderr), (&mut out, &mut err), supervision) => outcome?,
        never = fed => match never {},
    };
    Ok(Finished { outcome, stdout: out.bytes.bytes, stderr: err.bytes.bytes, duration: begun.elapsed() })
}

/// One stream: kept as far as it fits, and told.
struct Kept<'a, F> {
    bytes: Head,
    stream: Stream,
    pieces: usize,
    told: &'a Mutex<F>,
}

impl<F: FnMut(Stream, &[u8]) + Send> Sink for Kept<'_, F> {
    async fn take(&mut self, piece: &[u8]) {
        self.bytes.push(piece);
        self.pieces += 1;
        if self.pieces <= TOLD_CHUNKS {
            let mut told = self.told.lock();
            told(self.stream, piece);
        }
    }
}

//! One command from start to end: its output as it comes, what is kept of it, and how it ended.

use std::future::pending;
use std::io;
use std::time::{Duration, Instant};

use tokio::time::{Instant as Deadline, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::capture::{Head, RETAINED_BYTES, aggregate};
use crate::process::{Exit, Output, Process, Started, Stdio};
use crate::{Command, Result};

/// The most that one read, and so one piece of output, holds.
pub(crate) const CHUNK_BYTES: usize = 8192;
/// Pieces of one stream beyond this many are kept but no longer told.
pub(crate) const TOLD_CHUNKS: usize = 10_000;
/// How long output is still read after the program has ended, in case something it started holds it open.
const DRAIN: Duration = Duration::from_secs(2);
/// The same when nobody waits for the output any more.
const CANCELLED_DRAIN: Duration = Duration::from_millis(100);

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
        aggregate(&self.stdout, &self.stderr)
    }
}

/// Runs a command with empty input. `told` gets its output piece by piece as it comes. After a timeout or a
/// cancellation the whole process group is killed, and what was read until then is kept; dropping the future
/// kills it too.
pub async fn run(
    command: &Command,
    limits: Limits,
    cancel: &CancellationToken,
    mut told: impl FnMut(Stream, &[u8]) + Send,
) -> Result<Finished> {
    let begun = Instant::now();
    let timeout = limits.timeout.and_then(|timeout| Deadline::now().checked_add(timeout));
    let Started { mut process, stdout, stderr, .. } = Process::start(command, Stdio::Pipes { stdin: false }).await?;
    let mut stdout = Reader::new(Some(stdout), limits.retained);
    let mut stderr = Reader::new(stderr, limits.retained);
    let mut outcome = None;
    let mut exit = None;
    // Of whatever is left to read once the program has ended.
    let mut drained = None;
    while exit.is_none() || stdout.open() || stderr.open() {
        tokio::select! {
            biased;
            () = at(drained) => break,
            () = cancel.cancelled(), if outcome.is_none() => {
                outcome = Some(Outcome::Cancelled);
                process.kill();
                drained = Some(Deadline::now() + CANCELLED_DRAIN);
            }
            () = at(timeout), if outcome.is_none() && exit.is_none() => {
                outcome = Some(Outcome::TimedOut);
                process.kill();
                drained = Some(Deadline::now() + DRAIN);
            }
            piece = stdout.read() => stdout.take(piece, |bytes| told(Stream::Stdout, bytes)),
            piece = stderr.read() => stderr.take(piece, |bytes| told(Stream::Stderr, bytes)),
            ended = process.wait(), if exit.is_none() => {
                exit = Some(ended?);
                drained = drained.or_else(|| Some(Deadline::now() + DRAIN));
            }
        }
    }
    let outcome = match (outcome, exit) {
        (Some(outcome), _) => outcome,
        (None, Some(exit)) => Outcome::Ended(exit),
        (None, None) => Outcome::Cancelled,
    };
    Ok(Finished { outcome, stdout: stdout.kept.bytes, stderr: stderr.kept.bytes, duration: begun.elapsed() })
}

async fn at(deadline: Option<Deadline>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// One stream, until its end.
struct Reader {
    output: Option<Output>,
    buffer: Vec<u8>,
    kept: Head,
    chunks: usize,
}

impl Reader {
    fn new(output: Option<Output>, retained: usize) -> Self {
        Self { output, buffer: vec![0; CHUNK_BYTES], kept: Head::new(retained), chunks: 0 }
    }

    fn open(&self) -> bool {
        self.output.is_some()
    }

    /// How much was read into the buffer; never ready once the stream has ended.
    async fn read(&mut self) -> io::Result<usize> {
        match &mut self.output {
            Some(output) => output.read(&mut self.buffer).await,
            None => pending().await,
        }
    }

    /// A stream that cannot be read has ended: there is nothing else to do about it.
    fn take(&mut self, read: io::Result<usize>, told: impl FnOnce(&[u8])) {
        match read {
            Ok(0) | Err(_) => self.output = None,
            Ok(length) => {
                let piece = &self.buffer[..length];
                self.kept.push(piece);
                self.chunks += 1;
                if self.chunks <= TOLD_CHUNKS {
                    told(piece);
                }
            }
        }
    }
}

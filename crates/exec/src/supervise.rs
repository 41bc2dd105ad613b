//! Supervises a running program until its end. Its output goes to a sink, at the pace of the sink; at the deadline or
//! on cancellation the program is killed, however slow the sink is.

use std::future::pending;
use std::io;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant as Deadline, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::process::{Output, Process};

/// How long output is read after the program has ended, while a descendant holds it open.
const DRAIN: Duration = Duration::from_secs(2);
/// The same after a cancellation, when no caller waits for the output.
const CANCELLED_DRAIN: Duration = Duration::from_millis(100);
/// The capacity of a pipe: output from before the program's end is read even when that takes longer.
const PIPE_BYTES: usize = 64 * 1024;

/// A receiver of a program's output.
pub trait Sink {
    /// Takes a chunk. No more output is read until it returns.
    fn take(&mut self, bytes: &[u8]) -> impl Future<Output = ()> + Send;
}

/// The deadline and cancellation of a program, and how its output is read.
#[derive(Clone, Copy, Debug)]
pub struct Supervision<'a> {
    pub deadline: Option<Deadline>,
    pub stop: &'a CancellationToken,
    /// The longest chunk of output.
    pub piece: usize,
}

/// Waits for the end of a program and of its output. After the deadline, and when stopped, the program and all
/// it started is killed; dropping the future kills it too.
pub async fn supervise(
    mut process: Process,
    (stdout, stderr): (Output, Option<Output>),
    (to_stdout, to_stderr): (&mut (impl Sink + Send), &mut (impl Sink + Send)),
    supervision: Supervision<'_>,
) -> io::Result<Outcome> {
    let Supervision { deadline, stop, piece } = supervision;
    let enough = CancellationToken::new();
    let pumps = async {
        tokio::join!(pump(Some(stdout), to_stdout, piece, &enough), pump(stderr, to_stderr, piece, &enough));
    };
    let mut pumps = std::pin::pin!(pumps);
    let mut read = false;
    let mut early = None;
    let mut exit = None;
    // Of whatever is left to read once the program has ended.
    let mut drained = None;
    while exit.is_none() || !read {
        tokio::select! {
            biased;
            () = stop.cancelled(), if early.is_none() => {
                early = Some(Outcome::Cancelled);
                drained = Some(Deadline::now() + CANCELLED_DRAIN);
                process.kill();
            }
            () = at(deadline), if early.is_none() && exit.is_none() => {
                early = Some(Outcome::TimedOut);
                drained = Some(Deadline::now() + DRAIN);
                process.kill();
            }
            // A killed program may hang in a system call. Its end is not waited for.
            () = at(drained) => {
                enough.cancel();
                if !read {
                    pumps.await;
                }
                break;
            }
            ended = process.wait(), if exit.is_none() => {
                exit = Some(ended?);
                drained = drained.or_else(|| Some(Deadline::now() + DRAIN));
            }
            // Last, so that a flood of output does not starve the other branches.
            () = &mut pumps, if !read => read = true,
        }
    }
    Ok(early.or(exit.map(Outcome::Ended)).unwrap_or(Outcome::Cancelled))
}

/// Passes output on until its end, or until it is enough: then only what is there already.
async fn pump(output: Option<Output>, sink: &mut impl Sink, piece: usize, enough: &CancellationToken) {
    let Some(mut output) = output else { return };
    let mut buffer = vec![0; piece];
    let mut left = PIPE_BYTES;
    loop {
        let read = tokio::select! {
            biased;
            () = enough.cancelled() => match output.read(&mut buffer).now_or_never() {
                Some(read) if left > 0 => read,
                _ => return,
            },
            read = output.read(&mut buffer) => read,
        };
        match read {
            // A read error counts as the end of the output.
            Ok(0) | Err(_) => return,
            Ok(length) => {
                sink.take(&buffer[..length]).await;
                if enough.is_cancelled() {
                    left = left.saturating_sub(length);
                }
            }
        }
    }
}

async fn at(deadline: Option<Deadline>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

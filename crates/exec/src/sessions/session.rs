//! One session: a task that reads all its output until its end, and what callers share with that task.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant as Deadline, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::WriteError;
use crate::process::{Exit, Input, Output, Process};
use crate::run::{CHUNK_BYTES, MAX_CALLBACK_CHUNKS};
use crate::{HeadTail, TextChunks};

/// After the program has ended, reading stops when no output arrives for this long.
const QUIET: Duration = Duration::from_millis(50);
/// After the program has ended, reading stops after this time, also when its descendants still print.
const DRAIN: Duration = Duration::from_secs(2);

/// Events of a session, in order; the end is last.
#[derive(Debug)]
pub enum Event<'a> {
    /// A chunk of output that contains only complete characters.
    Output(&'a str),
    Ended(SessionEnd),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    pub exit: Exit,
    /// The whole output, bounded.
    pub output: HeadTail,
    pub duration: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Session(Arc<SessionInner>);

#[derive(Debug)]
struct SessionInner {
    state: Mutex<SessionState>,
    changed: Notify,
    stop: CancellationToken,
    input: tokio::sync::Mutex<Option<Input>>,
}

#[derive(Debug, Default)]
struct SessionState {
    unread: HeadTail,
    exit: Option<Exit>,
}

impl Session {
    pub fn new(input: Option<Input>) -> Self {
        Self(Arc::new(SessionInner {
            state: Mutex::default(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            input: tokio::sync::Mutex::new(input),
        }))
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.0.state.lock()
    }

    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    pub fn ended(&self) -> bool {
        self.state().exit.is_some()
    }

    /// Waits for the end or the deadline, and takes the output until then.
    pub async fn read(&self, deadline: Deadline) -> (HeadTail, Option<Exit>) {
        let ended = async {
            loop {
                let changed = self.0.changed.notified();
                if self.ended() {
                    return;
                }
                changed.await;
            }
        };
        let _ = timeout_at(deadline, ended).await;
        let mut state = self.state();
        let mut read = std::mem::take(&mut state.unread);
        if state.exit.is_none() {
            state.unread.push(&read.hold_back());
        }
        (read, state.exit)
    }

    /// Writes input. Fails at the deadline when the program does not read it.
    pub async fn write(&self, bytes: &[u8], deadline: Deadline) -> Result<(), WriteError> {
        let mut input = self.0.input.lock().await;
        let input = input.as_mut().ok_or(WriteError::StdinClosed)?;
        match timeout_at(deadline, input.write_all(bytes)).await {
            Ok(written) => Ok(written?),
            Err(_) => Ok(()),
        }
    }
}

/// Reads output until its end, publishes events, and kills the program when stopped.
pub(super) async fn pump(
    session: Session,
    mut process: Process,
    mut output: Output,
    mut events: impl FnMut(Event<'_>) + Send,
) {
    let begun = Instant::now();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut all = HeadTail::default();
    let mut text = TextChunks::default();
    let mut told = 0;
    let mut tell = |piece: &str, events: &mut dyn FnMut(Event<'_>)| {
        if !piece.is_empty() && told < MAX_CALLBACK_CHUNKS {
            told += 1;
            events(Event::Output(piece));
        }
    };
    let mut open = true;
    let mut killed = false;
    let mut exit = None;
    let mut quiet = None;
    let mut drained = None;
    while exit.is_none() || open {
        tokio::select! {
            biased;
            () = session.0.stop.cancelled(), if !killed => {
                process.kill();
                killed = true;
            }
            () = at(drained) => break,
            read = output.read(&mut buffer), if open => match read {
                // A read error counts as the end of the output.
                Ok(0) | Err(_) => open = false,
                Ok(length) => {
                    let piece = &buffer[..length];
                    all.push(piece);
                    session.state().unread.push(piece);
                    tell(&text.push(piece), &mut events);
                    quiet = quiet.map(|_| Deadline::now() + QUIET);
                }
            },
            () = at(quiet) => break,
            ended = process.wait(), if exit.is_none() => {
                // A program cannot be waited for twice, so a failed wait counts as its end.
                exit = Some(ended.unwrap_or(Exit::Signal(0)));
                quiet = Some(Deadline::now() + QUIET);
                drained = Some(Deadline::now() + DRAIN);
            }
        }
    }
    tell(&text.finish().unwrap_or_default(), &mut events);
    let exit = match exit.unwrap_or(Exit::Signal(0)) {
        // The exit codes of a session that was terminated by request, as clients know them.
        Exit::Signal(_) if killed => Exit::Code(if process.terminal().is_some() { 1 } else { -1 }),
        exit => exit,
    };
    // The event goes out before waiting calls return, because their return may end the turn.
    events(Event::Ended(SessionEnd { exit, output: all, duration: begun.elapsed() }));
    session.state().exit = Some(exit);
    session.0.changed.notify_waiters();
    session.0.input.lock().await.take();
}

async fn at(deadline: Option<Deadline>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

//! Sessions: commands that outlive the call that started them. A call waits for a while and leaves the command running;
//! later calls write to it or poll its output; a callback gets every event.

mod session;
mod table;

use std::io;
use std::time::{Duration, Instant};

use tokio::time::Instant as Deadline;

pub use session::{Event, SessionEnd};
pub use table::ReservedId;

use crate::process::{Exit, Process, Size, Stdio};
use crate::{Command, HeadTail, Result};
use session::{Session, pump};
use table::Table;

/// The number of open sessions from which the model gets a warning.
pub const SESSIONS_WARNED: usize = 60;

const MIN_YIELD: Duration = Duration::from_millis(250);
const MAX_YIELD: Duration = Duration::from_secs(30);
const START_YIELD: Duration = Duration::from_secs(10);
/// The shortest wait of a call that writes nothing, which limits the rate of polling.
const MIN_POLL_YIELD: Duration = Duration::from_secs(5);

/// How long the start of a command waits for it.
pub fn start_yield(requested: Option<Duration>) -> Duration {
    requested.unwrap_or(START_YIELD).clamp(MIN_YIELD, MAX_YIELD)
}

/// How long a write waits for output. Without input it may wait up to `max_poll`.
pub fn write_yield(requested: Option<Duration>, input: &[u8], max_poll: Duration) -> Duration {
    let requested = requested.unwrap_or(MIN_YIELD);
    if input.is_empty() {
        requested.clamp(MIN_POLL_YIELD, max_poll.max(MIN_POLL_YIELD))
    } else {
        requested.clamp(MIN_YIELD, MAX_YIELD)
    }
}

/// The sessions of one thread. When the last handle is dropped, all are killed.
#[derive(Clone, Debug, Default)]
pub struct Sessions(Table);

/// The state of a session at the end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPoll {
    pub id: u32,
    /// The output since the last call.
    pub output: HeadTail,
    /// `None`: still running, and can be polled by its id.
    pub exit: Option<Exit>,
    /// How long the call took.
    pub duration: Duration,
}

/// A session that was just started. It goes on when this is dropped.
#[derive(Debug)]
pub struct StartedSession<'a> {
    sessions: &'a Sessions,
    id: u32,
    session: Session,
    begun: Instant,
}

impl StartedSession<'_> {
    /// Waits for the end, at most `wait`. Cancel-safe.
    pub async fn wait(&self, wait: Duration) -> SessionPoll {
        self.sessions.poll(self.id, &self.session, self.begun, Deadline::now() + wait).await
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("Unknown process id {0}")]
    UnknownProcess(u32),
    #[error("stdin is closed for this session; rerun exec_command with tty=true to keep stdin open")]
    StdinClosed,
    #[error("failed to write to stdin: {0}")]
    Io(#[from] io::Error),
}

impl Sessions {
    /// Reserves the id of a command before it starts.
    pub fn reserve(&self) -> ReservedId {
        self.0.reserve()
    }

    /// Starts a command and waits for its end, at most `wait`.
    pub async fn start(
        &self,
        id: ReservedId,
        command: &Command,
        terminal: bool,
        wait: Duration,
        events: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<SessionPoll> {
        Ok(self.launch(id, command, terminal, events).await?.wait(wait).await)
    }

    /// Starts a command. With a terminal it has input; without, its stdout and stderr are one stream. `events`
    /// gets everything. When this is dropped before it returns, the command does not run.
    pub async fn launch(
        &self,
        id: ReservedId,
        command: &Command,
        terminal: bool,
        events: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<StartedSession<'_>> {
        let begun = Instant::now();
        let stdio = if terminal { Stdio::Terminal(Size::default()) } else { Stdio::OnePipe };
        let started = Process::start(command, stdio).await?;
        let session = Session::new(started.stdin);
        tokio::spawn(pump(session.clone(), started.process, started.stdout, events));
        let id = self.0.insert(id, session.clone());
        Ok(StartedSession { sessions: self, id, session, begun })
    }

    /// Writes to a session, or writes nothing, and waits for its end, at most `wait`.
    pub async fn write(&self, id: u32, input: &[u8], wait: Duration) -> Result<SessionPoll, WriteError> {
        let begun = Instant::now();
        let deadline = Deadline::now() + wait;
        let session = self.0.use_session(id).ok_or(WriteError::UnknownProcess(id))?;
        if !input.is_empty() {
            session.write(input, deadline).await?;
        }
        Ok(self.poll(id, &session, begun, deadline).await)
    }

    /// How many sessions run, or have ended without a poll that reported it.
    pub fn open(&self) -> usize {
        self.0.open()
    }

    /// Kills a session, if there is one with this id. Its callback gets the end event.
    pub fn terminate(&self, id: u32) {
        self.0.stop(id);
    }

    /// Kills every session. Their callbacks get the end events.
    pub fn terminate_all(&self) {
        self.0.clear();
    }

    async fn poll(&self, id: u32, session: &Session, begun: Instant, deadline: Deadline) -> SessionPoll {
        let (output, exit) = session.read(deadline).await;
        if exit.is_some() {
            self.0.remove(id);
        }
        SessionPoll { id, output, exit, duration: begun.elapsed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yield_times_are_clamped() {
        let ms = Duration::from_millis;
        assert_eq!(
            [None, Some(1), Some(500), Some(99_000)].map(|wait| start_yield(wait.map(ms))),
            [ms(10_000), ms(250), ms(500), ms(30_000)]
        );
        let max = ms(300_000);
        let write = |wait: Option<u64>, input: &[u8]| write_yield(wait.map(ms), input, max);
        assert_eq!([None, Some(1), Some(99_000)].map(|wait| write(wait, b"x")), [ms(250), ms(250), ms(30_000)]);
        assert_eq!([None, Some(9_000), Some(999_000)].map(|wait| write(wait, b"")), [ms(5_000), ms(9_000), max]);
        assert_eq!(write_yield(None, b"", ms(10)), ms(5_000));
    }
}

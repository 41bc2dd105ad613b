//! [`Turn`]: a handle to a running turn, with its events and its result.

use std::fmt;

use loomd_protocol::{self as protocol, TurnInterruptParams, TurnSteerParams};
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use crate::client::Client;
use crate::collect::{Collector, CompletedTurn};
use crate::error::Error;
use crate::event::Event;
use crate::events::Events;
use crate::input::Input;

/// A handle to a running turn. Dropping it does not interrupt the turn; [`interrupt`](Self::interrupt) does.
///
/// ```no_run
/// # async fn example(thread: loomd_client::Thread) -> Result<(), loomd_client::Error> {
/// use loomd_client::protocol::ServerNotification;
///
/// let mut turn = thread.send("What does this project do?").await?;
/// while let Some(event) = turn.next().await {
///     if let Some(ServerNotification::AgentMessageDelta(piece)) = event?.notification() {
///         print!("{}", piece.delta);
///     }
/// }
/// let done = turn.finish().await?;
/// println!("{:?}", done.usage);
/// # Ok(())
/// # }
/// ```
pub struct Turn {
    client: Client,
    thread_id: String,
    started: protocol::Turn,
    events: Events,
    collector: Collector,
    begun: Instant,
    /// When the last event was received.
    last_event: Instant,
    failed: bool,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("thread_id", &self.thread_id).field("id", &self.started.id).finish_non_exhaustive()
    }
}

impl Turn {
    /// `events` has all events of the thread since before `turn/start` was sent.
    pub(crate) fn new(
        client: Client,
        thread_id: String,
        started: protocol::Turn,
        before: Option<String>,
        events: Events,
    ) -> Self {
        let collector = Collector::new(started.id.clone(), before);
        let begun = Instant::now();
        Self { client, thread_id, started, events, collector, begun, last_event: begun, failed: false }
    }

    pub fn id(&self) -> &str {
        &self.started.id
    }

    pub fn thread_id(&self) -> &str {
        &self.thread_id
    }

    /// The turn as the response to `turn/start` has it.
    pub fn started(&self) -> &protocol::Turn {
        &self.started
    }

    /// The next event of the thread, or `None` once the turn is over. Cancel-safe.
    ///
    /// After [`turn_timeout`](crate::Options::turn_timeout) without an event the turn is interrupted and this returns
    /// [`Error::TurnTimeout`]; after [`turn_limit`](crate::Options::turn_limit) in all, [`Error::TurnLimit`].
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        while !self.failed && !self.collector.is_over() {
            let patience = self.client.options().turn_timeout;
            let limit = self.client.options().turn_limit;
            let limited = limit.map(|limit| self.begun + limit);
            if limited.is_some_and(|at| at <= Instant::now()) && self.collector.over_at().is_none() {
                self.give_up();
                let (thread_id, turn_id) = (self.thread_id.clone(), self.id().to_owned());
                return self.fail(Error::TurnLimit { thread_id, turn_id, after: limit.unwrap_or_default() });
            }
            let silent = patience.map(|patience| self.last_event + patience);
            let deadline = self.collector.over_at().or_else(|| [silent, limited].into_iter().flatten().min());
            let next = match deadline {
                Some(deadline) => timeout_at(deadline, self.events.next()).await,
                None => Ok(self.events.next().await),
            };
            match next {
                Ok(Some(Ok(event))) => {
                    self.last_event = Instant::now();
                    self.collector.absorb(&event);
                    return Some(Ok(event));
                }
                Ok(Some(Err(error))) => return self.fail(error),
                Ok(None) => return self.fail(Error::Closed),
                Err(_) if self.collector.over_at().is_some() => {}
                // The limit was reached, which the loop begins with.
                Err(_) if limited.is_some_and(|at| at <= Instant::now()) => {}
                // The server waits for this client's handler.
                Err(_) if self.client.hub().has_open_request(&self.thread_id) => self.last_event = Instant::now(),
                Err(_) => {
                    self.give_up();
                    let (thread_id, turn_id) = (self.thread_id.clone(), self.id().to_owned());
                    let after = patience.unwrap_or_default();
                    return self.fail(Error::TurnTimeout { thread_id, turn_id, after });
                }
            }
        }
        None
    }

    /// Waits for the end of the turn and returns its result, including what [`next`](Self::next) has returned
    /// already. A failed turn is [`Error::TurnFailed`].
    pub async fn finish(mut self) -> Result<CompletedTurn, Error> {
        while let Some(event) = self.next().await {
            event?;
        }
        self.collector.into_completed()
    }

    /// Adds input to the turn.
    pub async fn steer(&self, input: impl Into<Input>) -> Result<String, Error> {
        let expected_turn_id = self.collector.turn_id().to_owned();
        let params = TurnSteerParams {
            thread_id: self.thread_id.clone(),
            input: input.into().0,
            expected_turn_id,
            client_user_message_id: None,
        };
        Ok(self.client.turn_steer(params).await?.turn_id)
    }

    /// Interrupts the turn, which then ends with status `interrupted`.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.client.interrupt_turn(&self.thread_id, self.collector.turn_id()).await
    }

    fn fail(&mut self, error: Error) -> Option<Result<Event, Error>> {
        self.failed = true;
        Some(Err(error))
    }

    /// Interrupts the turn without waiting, as its result will not be read.
    fn give_up(&self) {
        let client = self.client.clone();
        let params =
            TurnInterruptParams { thread_id: self.thread_id.clone(), turn_id: self.collector.turn_id().to_owned() };
        tokio::spawn(async move {
            if let Err(error) = client.turn_interrupt(params).await {
                debug!(%error, "cannot interrupt a turn that timed out");
            }
        });
    }
}

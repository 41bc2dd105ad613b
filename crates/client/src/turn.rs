//! A turn that runs: its events as they come, what it did at the end, and what can be done to it meanwhile.

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

/// A running turn. Dropping it does not stop the turn; [`interrupt`](Self::interrupt) does.
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
    /// When something was last last_event of it.
    last_event: Instant,
    failed: bool,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("thread_id", &self.thread_id).field("id", &self.started.id).finish_non_exhaustive()
    }
}

impl Turn {
    /// `events` has everything about the thread since before the turn was asked for.
    pub(crate) fn new(
        client: Client,
        thread_id: String,
        started: protocol::Turn,
        before: Option<String>,
        events: Events,
    ) -> Self {
        let collector = Collector::new(started.id.clone(), before);
        Self { client, thread_id, started, events, collector, last_event: Instant::now(), failed: false }
    }

    pub fn id(&self) -> &str {
        &self.started.id
    }

    pub fn thread_id(&self) -> &str {
        &self.thread_id
    }

    /// The turn as it was when it started.
    pub fn started(&self) -> &protocol::Turn {
        &self.started
    }

    /// The next event of the thread, until the turn is over. Dropping the future loses nothing.
    ///
    /// When nothing is last_event for [`turn_timeout`](crate::Options::turn_timeout) the turn is interrupted, and this
    /// gives [`Error::TurnTimeout`].
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        while !self.failed && !self.collector.is_over() {
            let patience = self.client.options().turn_timeout;
            let deadline = self.collector.over_at().or_else(|| patience.map(|patience| self.last_event + patience));
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
                // It waits for us, not we for it.
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

    /// Waits for the end, and gives all that happened: also what [`next`](Self::next) has given already. A turn
    /// that failed is [`Error::TurnFailed`], with what it did until then.
    pub async fn finish(mut self) -> Result<CompletedTurn, Error> {
        while let Some(event) = self.next().await {
            event?;
        }
        self.collector.into_completed()
    }

    /// Adds to what the user said, while the turn runs.
    pub async fn steer(&self, input: impl Into<Input>) -> Result<String, Error> {
        let expected_turn_id = self.collector.turn_id().to_owned();
        let params = TurnSteerParams { thread_id: self.thread_id.clone(), input: input.into().0, expected_turn_id };
        Ok(self.client.turn_steer(params).await?.turn_id)
    }

    /// Stops the turn. It ends as interrupted.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.client.interrupt_turn(&self.thread_id, self.collector.turn_id()).await
    }

    fn fail(&mut self, error: Error) -> Option<Result<Event, Error>> {
        self.failed = true;
        Some(Err(error))
    }

    /// Nobody will look at what the turn does from here on, so it should not go on.
    fn give_up(&self) {
        let client = self.client.clone();
        let params =
            TurnInterruptParams { thread_id: self.thread_id.clone(), turn_id: self.collector.turn_id().to_owned() };
        tokio::spawn(async move {
            if let Err(error) = client.turn_interrupt(params).await {
                debug!(%error, "cannot interrupt a turn that was given up");
            }
        });
    }
}

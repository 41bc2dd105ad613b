//! The turn of an evaluation, until it ends by itself or by a limit.

use std::time::SystemTime;

use loomd_client::protocol::{ServerNotification, TurnInterruptParams, TurnStartParams, TurnStatus};
use loomd_client::{Client, Error, Turn};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::debug;

use super::handler::{Stop, ToolCalls};
use super::native;
use super::open::OpenedThread;
use crate::adapter::Adapter;
use crate::error::{Failure, FailureKind, Phase};
use crate::event::{Event, PromptExecuted};
use crate::limits::TurnUsage;

pub(super) struct TurnRequest<'a> {
    pub(super) adapter: &'a Adapter,
    pub(super) client: &'a Client,
    pub(super) opened: &'a OpenedThread,
    pub(super) text: String,
    pub(super) schema: Option<Value>,
    pub(super) deadline: Option<Instant>,
}

/// A turn that completed.
pub(super) struct Finished {
    /// The final message.
    pub(super) text: Option<String>,
    pub(super) usage: Option<TurnUsage>,
    pub(super) thread_id: String,
    pub(super) turn_id: String,
    pub(super) diff: Option<String>,
}

pub(super) async fn run(request: TurnRequest<'_>, calls: &ToolCalls) -> Result<Finished, Box<Failure>> {
    let begun = Instant::now();
    let grace = request.adapter.interrupt_grace;
    let deadline = request.deadline;
    let thread_id = request.opened.thread.id().to_owned();
    let usage = TurnUsage::new(request.opened.used);
    let StartedTurn { turn, guard } = start(request).await?;
    let turn_id = turn.id().to_owned();
    let mut running = RunningTurn { calls, turn, usage, deltas: Deltas::default() };

    let watched = tokio::select! {
        biased;
        stop = calls.stopped() => Ok(Some(stop)),
        () = at(deadline) => Ok(Some(Stop::Deadline)),
        watched = running.watch() => watched,
    };
    if let Ok(Some(_)) = watched {
        running.interrupt(grace).await;
    }
    guard.disarm();
    let usage = running.usage.known();
    if let Some(usage) = usage {
        calls.epoch.store_usage(&thread_id, usage.thread);
    }
    let deltas = running.deltas.text;
    let failed = |failure: Box<Failure>| failure.in_turn(&thread_id, &turn_id, usage.map(|usage| usage.turn));
    let executed = |status| {
        calls.epoch.publish(Event::PromptExecuted(PromptExecuted {
            prompt: calls.prompt.clone(),
            thread_id: thread_id.clone(),
            turn_id: turn_id.clone(),
            status,
            usage: usage.map(|usage| usage.turn),
            duration: begun.elapsed(),
            at: SystemTime::now(),
        }));
    };
    if let Some(stop) = watched.map_err(&failed)? {
        executed(TurnStatus::Interrupted);
        return Err(failed(stopped(stop)));
    }
    match running.turn.finish().await {
        Ok(done) => {
            executed(done.turn.status);
            if done.turn.status != TurnStatus::Completed {
                let message = "the turn was interrupted";
                return Err(failed(Failure::new(Phase::Response, FailureKind::Interrupted, message)));
            }
            let text = done.agent_message.or(deltas);
            Ok(Finished { text, usage, thread_id, turn_id, diff: done.diff })
        }
        Err(Error::TurnFailed(done)) => {
            executed(TurnStatus::Failed);
            Err(failed(Failure::of_turn(done.turn.error.as_ref())))
        }
        Err(error) => Err(failed(Failure::connection(&error))),
    }
}

fn stopped(stop: Stop) -> Box<Failure> {
    match stop {
        Stop::Deadline => {
            Failure::new(Phase::Request, FailureKind::Deadline, "the deadline passed; the turn was interrupted")
        }
        Stop::Budget(exceeded) => Failure::new(Phase::Budget, FailureKind::Budget, exceeded),
        Stop::Tool { tool, message } => {
            Failure::new(Phase::Tool, FailureKind::Tool, format!("the tool `{tool}` failed: {message}"))
        }
    }
}

/// A turn that is interrupted when this is dropped.
struct StartedTurn {
    turn: Turn,
    guard: InterruptGuard,
}

/// Starts the turn in a task of its own, so that it is also interrupted if the evaluation is dropped before the
/// response comes.
async fn start(request: TurnRequest<'_>) -> Result<StartedTurn, Box<Failure>> {
    let TurnRequest { adapter, client, opened, text, schema, deadline } = request;
    let params = TurnStartParams {
        model: adapter.model.clone(),
        effort: adapter.effort.clone(),
        summary: adapter.summary,
        personality: adapter.personality,
        output_schema: schema,
        ..opened.thread.turn_params(text)
    };
    let client = client.clone();
    let starting = async {
        let task = tokio::spawn(async move {
            let turn = client.start_turn(params).await?;
            let guard = InterruptGuard::new(client, turn.thread_id(), turn.id());
            Ok(StartedTurn { turn, guard })
        });
        task.await.unwrap_or(Err(Error::Closed))
    };
    let started = match deadline {
        Some(deadline) => timeout_at(deadline, starting).await.map_err(|_| {
            Failure::new(Phase::Request, FailureKind::Deadline, "the deadline passed before the turn was started")
        })?,
        None => starting.await,
    };
    started.map_err(|error| Failure::request(FailureKind::TurnStart, &error))
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct RunningTurn<'a> {
    calls: &'a ToolCalls,
    turn: Turn,
    usage: TurnUsage,
    deltas: Deltas,
}

impl RunningTurn<'_> {
    /// Publishes the events of the turn until it ends or exceeds its budget. Cancel-safe.
    async fn watch(&mut self) -> Result<Option<Stop>, Box<Failure>> {
        while let Some(event) = self.turn.next().await {
            let event = event.map_err(|error| Failure::connection(&error))?;
            // The events of other turns of the thread are not this evaluation's.
            if event.turn_id.as_deref() != Some(self.turn.id()) {
                continue;
            }
            if let Some(notification) = event.notification() {
                self.absorb(notification);
            }
            if let Some(exceeded) = self.calls.budget.as_ref().and_then(|budget| budget.exceeded()) {
                return Ok(Some(Stop::Budget(exceeded)));
            }
        }
        Ok(None)
    }

    fn absorb(&mut self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ItemCompleted(completed) => {
                let (thread_id, turn_id) = (self.turn.thread_id(), self.turn.id());
                if let Some(invoked) = native::invoked(&self.calls.prompt, thread_id, turn_id, &completed.item) {
                    self.calls.epoch.publish(Event::ToolInvoked(invoked));
                }
            }
            ServerNotification::AgentMessageDelta(delta) => self.deltas.add(&delta.item_id, &delta.delta),
            ServerNotification::ThreadTokenUsageUpdated(updated) => {
                self.usage.update(&updated.token_usage.last, &updated.token_usage.total);
                if let Some(budget) = &self.calls.budget {
                    budget.set(self.usage.turn);
                }
            }
            _ => {}
        }
    }

    /// Interrupts the turn, and waits for its end for a while.
    async fn interrupt(&mut self, grace: std::time::Duration) {
        let ending = async {
            if let Err(error) = self.turn.interrupt().await {
                debug!(%error, "cannot interrupt the turn");
                return;
            }
            while let Some(Ok(event)) = self.turn.next().await {
                if let Some(notification) = event.notification() {
                    self.absorb(notification);
                }
            }
        };
        if timeout(grace, ending).await.is_err() {
            debug!("the turn did not end after its interrupt");
        }
    }
}

/// The text of the message that is being written, for servers that do not complete it.
#[derive(Default)]
struct Deltas {
    item_id: String,
    text: Option<String>,
}

impl Deltas {
    fn add(&mut self, item_id: &str, delta: &str) {
        if self.item_id != item_id {
            (self.item_id, self.text) = (item_id.to_owned(), None);
        }
        self.text.get_or_insert_default().push_str(delta);
    }
}

/// Interrupts the turn when its evaluation is dropped: a server that lives on would continue it.
struct InterruptGuard {
    client: Option<Client>,
    params: TurnInterruptParams,
}

impl InterruptGuard {
    fn new(client: Client, thread_id: &str, turn_id: &str) -> Self {
        let params = TurnInterruptParams { thread_id: thread_id.to_owned(), turn_id: turn_id.to_owned() };
        Self { client: Some(client), params }
    }

    fn disarm(mut self) {
        self.client = None;
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let params = self.params.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = client.turn_interrupt(params).await {
                    debug!(%error, "cannot interrupt the turn of a dropped evaluation");
                }
                client.close().await;
            });
        }
    }
}

//! What clients are shown of a thread: its records, and what is open in its running turn.

use std::sync::Arc;

use loomd_protocol::{Thread as WireThread, Turn as WireTurn, TurnStatus};
use loomd_store::{Reader, Store, ThreadId};

use super::launching::in_progress;
use super::op::{Opened, Reply};
use super::running_turn::RunningTurn;
use super::state::Thread;
use crate::event::{EventId, MissedEvents};
use crate::event_sink::Subscriber;
use crate::history::ReadTurns;
use crate::refusal::Refusal;
use crate::turns::{full, interrupt_open};
use crate::view::Persistence;

impl Thread {
    pub(super) fn opened(&self, thread: WireThread) -> Opened {
        let instruction_sources = Arc::clone(&self.instruction_sources);
        let settings = self.settings.clone();
        Opened { thread, settings, instruction_sources, event_id: None, missed: None, open_items: Vec::new() }
    }

    /// Sends a client the snapshot of the thread and subscribes it. The running turn goes on, and publishes, while the
    /// history is read.
    pub(super) async fn join(
        &mut self,
        subscriber: Subscriber,
        turns: bool,
        after: Option<EventId>,
        reply: Reply<Opened>,
    ) {
        let read = match self.read_turns(turns).await {
            Ok(read) => read,
            Err(refusal) => return reply(Err(refusal)),
        };
        let turn_id = self.running.as_ref().map(RunningTurn::turn_id);
        let (join, status) = self.events.join(subscriber, turn_id, after, || self.view.status()).await;
        // Reads only the records that were added since the first read.
        let shown = self.stored(read).await;
        let join = join.hold().await;
        match shown {
            Ok(mut thread) => {
                thread.status = status;
                let mut open_items = join.open_items();
                if let Some(turn) = self.running_turn(&mut thread.turns) {
                    join.show(turn);
                    let is_shown = |id: &&String| turn.items.iter().any(|item| item.id() == id.as_str());
                    open_items.extend(self.recovered_calls.iter().filter(|id| !is_shown(id)).cloned());
                }
                self.unload_delay = None;
                let (event_id, missed) = (Some(join.at()), join.missed());
                reply(Ok(Opened { event_id, missed, open_items, ..self.opened(thread) }));
                join.subscribe().await;
                // A client that missed no event knows the goal.
                if missed != Some(MissedEvents::Follow) {
                    self.notify_goal(subscriber).await;
                }
            }
            Err(refusal) => {
                reply(Err(refusal));
                join.refuse().await;
            }
        }
    }

    /// The thread's records. Fails when it is ephemeral.
    pub(crate) fn reader(&self) -> Result<&dyn Reader, Refusal> {
        self.reader.as_deref().ok_or_else(|| Refusal::no_rollout(self.id))
    }

    /// The thread as it is now.
    pub(super) async fn show(&self, with_turns: bool) -> Result<WireThread, Refusal> {
        let turns = self.read_turns(with_turns).await?;
        let mut thread = self.stored(turns).await?;
        if let Some(turn) = self.running_turn(&mut thread.turns) {
            // An item may be recorded and not yet published as completed.
            let mut open = self.events.open_items(&turn.id);
            open.retain(|item| turn.items.iter().all(|written| written.id() != item.id()));
            turn.items.extend(open);
        }
        Ok(thread)
    }

    /// Shows the thread as it is right after some event, without a subscription.
    pub(super) async fn show_at(&self, with_turns: bool, reply: Reply<(WireThread, EventId)>) {
        let read = match self.read_turns(with_turns).await {
            Ok(read) => read,
            Err(refusal) => return reply(Err(refusal)),
        };
        let turn_id = self.running.as_ref().map(RunningTurn::turn_id);
        let (join, status) = self.events.join(Subscriber::NONE, turn_id, None, || self.view.status()).await;
        let shown = self.stored(read).await;
        let join = join.hold().await;
        reply(shown.map(|mut thread| {
            thread.status = status;
            if let Some(turn) = self.running_turn(&mut thread.turns) {
                join.show(turn);
            }
            (thread, join.at())
        }));
        join.refuse().await;
    }

    /// The turns in the rollout so far, if they are wanted.
    async fn read_turns(&self, wanted: bool) -> Result<Option<ReadTurns>, Refusal> {
        if !wanted {
            return Ok(None);
        }
        if self.view.persistence() != Persistence::Stored {
            return Err(Refusal::no_rollout(self.id));
        }
        let mut turns = ReadTurns::new(self.id);
        turns.read_on(self.reader()?).await?;
        Ok(Some(turns))
    }

    /// The thread as it is now, with the turns that were read and what the rollout got since. Items that are open are
    /// not in it.
    async fn stored(&self, turns: Option<ReadTurns>) -> Result<WireThread, Refusal> {
        let mut thread = self.view.thread();
        if self.view.persistence() != Persistence::Stored {
            add_side_facts(&*self.store, self.id, &mut thread).await?;
            return Ok(thread);
        }
        let status = thread.status.clone();
        let stored = self.store.find(self.id, None).await?;
        thread = stored.to_wire(&self.settings.model_provider);
        thread.status = status;
        self.view.dress(&mut thread);
        if let Some(mut turns) = turns {
            turns.read_on(self.reader()?).await?;
            self.check_owned()?;
            thread.turns = turns.finish();
            match &self.running {
                None => interrupt_open(&mut thread.turns),
                // Its start may not be written yet.
                Some(running) if thread.turns.iter().all(|turn| turn.id != running.turn_id()) => {
                    let started_at = Some(running.cx.started.at.as_second());
                    thread.turns.push(WireTurn { started_at, ..in_progress(running.turn_id().to_owned()) });
                }
                Some(_) => {}
            }
            full(&mut thread.turns);
        }
        Ok(thread)
    }

    /// Fails when another process may have written what was just read: it does not belong to the running turn.
    fn check_owned(&self) -> Result<(), Refusal> {
        let is_live = self.services.ownership.as_ref().is_none_or(|ownership| ownership.is_live());
        match is_live && !self.let_go.is_abandoned() {
            true => Ok(()),
            false => Err(Refusal::LeaseLost(format!("thread {} is no longer this node's", self.id))),
        }
    }

    /// The running turn, if it is among these. It is in progress until its end is published.
    fn running_turn<'t>(&self, turns: &'t mut [WireTurn]) -> Option<&'t mut WireTurn> {
        let running = self.running.as_ref()?;
        let turn = turns.iter_mut().rfind(|turn| turn.id == running.turn_id())?;
        turn.status = TurnStatus::InProgress;
        Some(turn)
    }
}

/// The name and the changed git facts of a thread of which no rollout is stored.
pub(crate) async fn add_side_facts(
    store: &dyn Store,
    id: ThreadId,
    thread: &mut WireThread,
) -> loomd_store::Result<()> {
    thread.name = store.name(id).await?;
    if let Some(patch) = store.git_patch(id).await? {
        thread.git_info = patch.apply(thread.git_info.take());
    }
    Ok(())
}

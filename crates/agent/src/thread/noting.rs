//! What a thread notes about its unfinished turn, before its client is answered, so that another process can take the
//! turn up.

use jiff::Timestamp;
use loomd_protocol::OnDisconnect;
use loomd_store::Durability;

use super::running_turn::QueuedTurn;
use super::state::Thread;
use crate::inbox::UserMessageInput;
use crate::refusal::Refusal;
use crate::turn::Work;
use crate::turn_notes::{NotedClient, NotedThread, StartedNote, TurnNote};
use crate::view::Persistence;

/// What is noted again about a turn that is taken up. Empty for a new one.
#[derive(Debug, Default)]
pub(super) struct TakenUp {
    /// How often it has been taken up.
    pub count: u32,
    /// The records of the turn at the time.
    pub records: usize,
    /// Its input and its calls so far: until they are recorded, only the notes have them.
    pub notes: Vec<TurnNote>,
}

impl Thread {
    /// Writes the start of the rollout of a new thread whose turns are noted, so that there is a thread to load.
    pub(super) async fn materialize_noted(&mut self) -> Result<(), Refusal> {
        match self.notes.is_some() && self.view.persistence() == Persistence::Pending {
            true => self.materialize_as(Vec::new(), Durability::Flushed).await,
            false => Ok(()),
        }
    }

    /// Notes a turn that is about to start. The notes of an earlier one are replaced.
    pub(super) async fn note_started(
        &mut self,
        turn_id: &str,
        work: &mut Work,
        queued_message: bool,
    ) -> Result<(), Refusal> {
        let started_at = Timestamp::now();
        self.note_turn(turn_id, started_at, work, queued_message, TakenUp::default()).await
    }

    pub(super) async fn note_turn(
        &mut self,
        turn_id: &str,
        started_at: Timestamp,
        work: &mut Work,
        queued_message: bool,
        taken_up: TakenUp,
    ) -> Result<(), Refusal> {
        if let Some(stale) = self.stale_notes.take() {
            stale.remove().await?;
        }
        let Some(notes) = self.notes.clone() else { return Ok(()) };
        let started = TurnNote::Started(Box::new(StartedNote {
            turn_id: turn_id.into(),
            started_at_ms: started_at.as_millisecond(),
            work: work.noted(),
            queued_message,
            thread: self.noted(),
            attempts: taken_up.count,
            records: taken_up.records,
        }));
        let queued = self
            .queued
            .iter_mut()
            .map(|queued| TurnNote::Queued { turn_id: queued.turn_id.clone(), work: queued.work.noted() });
        let all: Vec<TurnNote> = std::iter::once(started).chain(taken_up.notes).chain(queued).collect();
        Ok(notes.replace(&all).await?)
    }

    fn noted(&self) -> NotedThread {
        let profile = &self.profile;
        NotedThread {
            settings: self.settings.to_stored(),
            config: profile.thread_config.clone(),
            developer_instructions: profile.developer_instructions.clone(),
            raw_events: profile.raw_events,
            has_environment: profile.has_environment,
            on_disconnect: self.disconnect.get(),
            client: NotedClient {
                name: profile.client.clone(),
                user_agent: profile.identity.user_agent.clone(),
                originator: profile.identity.originator.clone(),
                protocol_version: profile.identity.version.clone(),
                newer: profile.newer_tools,
                openai_form: profile.openai_form,
            },
        }
    }

    /// Notes input that the running turn is about to be given.
    pub(super) async fn note_input(&self, input: &mut UserMessageInput) -> Result<(), Refusal> {
        self.note(|| TurnNote::Input(input.noted())).await
    }

    /// Changes what a running turn does when the last client is disconnected, and notes that.
    pub(super) async fn set_on_disconnect(&self, policy: OnDisconnect) -> Result<(), Refusal> {
        if self.running.is_some() && policy != self.disconnect.get() {
            self.note(|| TurnNote::OnDisconnect { policy }).await?;
        }
        self.disconnect.set(policy);
        Ok(())
    }

    /// Notes a turn that is about to wait for the running one.
    pub(super) async fn note_queued(&self, queued: &mut QueuedTurn) -> Result<(), Refusal> {
        self.note(|| TurnNote::Queued { turn_id: queued.turn_id.clone(), work: queued.work.noted() }).await
    }

    /// Notes that a turn no longer waits.
    pub(super) async fn note_unqueued(&self, turn_id: &str) {
        let noted = self.note(|| TurnNote::Unqueued { turn_id: turn_id.into() }).await;
        if let Err(refusal) = noted {
            tracing::warn!(thread = %self.id, %refusal, "the notes about a turn cannot be changed");
        }
    }

    async fn note(&self, note: impl FnOnce() -> TurnNote) -> Result<(), Refusal> {
        match &self.notes {
            Some(notes) => Ok(notes.add(&note()).await?),
            None => Ok(()),
        }
    }

    /// Removes the notes of a turn that has ended, unless another one has started.
    pub(super) async fn remove_notes(&self) {
        let Some(notes) = self.notes.as_ref().filter(|_| self.running.is_none()) else { return };
        if let Err(error) = notes.remove().await {
            // Another process finds that the turn has ended.
            tracing::warn!(thread = %self.id, %error, "the notes about a turn that has ended cannot be removed");
        }
    }
}

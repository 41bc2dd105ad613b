//! What a thread records while no turn is running.

use std::sync::Arc;

use loomd_protocol::{ItemCompletedNotification, ResponseItem, ServerNotification, ThreadItem};
use loomd_store::rollout::{BaseInstructions, Record};
use loomd_store::{Durability, Position};

use super::memory::{Memory, UnwrittenItem};
use super::state::Thread;
use crate::conversation::Conversation;
use crate::host::ItemEnded;
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::view::Persistence;

impl Thread {
    /// Records the pending notifications of child agents. Does nothing while a turn is running: they are recorded at
    /// its end.
    pub(super) async fn record_notifications(&mut self) {
        if self.running.is_some() {
            return;
        }
        for item in self.tools.agent_tree.take_pending(self.id) {
            if let Err(refusal) = self.record_item(item).await {
                tracing::warn!(thread = %self.id, %refusal, "the conversation could not be added to");
            }
        }
    }

    /// Records that a command in the background has ended, then publishes it. A failed write is retried later.
    pub(super) async fn item_ended(&mut self, ended: ItemEnded) {
        let ItemEnded { turn_id, item, event } = ended;
        let record = Record::EventMsg(event);
        if let Some(running) = &self.running
            && running.cx.record_while_open(std::slice::from_ref(&record)).await
        {
            return self.show_completed(item, turn_id).await;
        }
        self.unwritten.push(UnwrittenItem { turn_id, item, record });
        self.retry_writes().await;
    }

    /// Writes the records that failed before, and publishes their items. Those that fail again stay.
    pub(super) async fn retry_writes(&mut self) {
        match self.prepare().await {
            Ok((_, memory)) => self.memory = Some(Box::new(memory)),
            Err(refusal) => {
                let waiting = self.unwritten.len();
                tracing::warn!(thread = %self.id, %refusal, waiting, "the end of a command cannot be written yet");
            }
        }
    }

    pub(super) async fn show_completed(&self, item: ThreadItem, turn_id: String) {
        self.events
            .publish(ServerNotification::ItemCompleted(ItemCompletedNotification {
                item,
                thread_id: self.id.to_string(),
                turn_id,
                completed_at_ms: jiff::Timestamp::now().as_millisecond(),
                started_at_ms: None,
            }))
            .await;
    }

    /// Returns a recorder and the memory, read again if another process has written to the rollout.
    pub(super) async fn prepare(&mut self) -> Result<(Recorder, Memory), Refusal> {
        let persistence = self.view.persistence();
        let writer = match &self.reader {
            Some(reader) => Some(reader.writer().await?),
            None => None,
        };
        if let Some(writer) = &writer {
            self.events.follow_lease(writer.epoch());
        }
        let mut memory = match self.memory.take() {
            Some(memory) => *memory,
            None => Memory::new(&self.profile, &self.services, None),
        };
        let mut end = Position::START;
        if persistence == Persistence::Stored {
            let reader = self.reader()?;
            end = reader.end().await?;
            // Another process may have written to the rollout.
            if memory.conversation.as_ref().is_none_or(|known| known.end != end) {
                memory.conversation = Some(Conversation::load(reader).await?);
            }
        }
        let mut recorder = Recorder::new(writer, end, Arc::clone(&self.services.metering.store));
        if !self.unwritten.is_empty() && persistence != Persistence::Pending {
            for unwritten in &self.unwritten {
                recorder.note(&unwritten.record)?;
            }
            recorder.flush(Durability::Flushed).await?;
            if let Some(conversation) = &mut memory.conversation {
                conversation.end = recorder.end;
            }
            for UnwrittenItem { turn_id, item, .. } in std::mem::take(&mut self.unwritten) {
                self.show_completed(item, turn_id).await;
            }
        }
        Ok((recorder, memory))
    }

    /// Writes the first records of a thread of which nothing is stored yet, and `records` behind them. Does nothing for a
    /// thread that is stored or ephemeral, or whose first turn is running.
    pub(super) async fn materialize(&mut self, records: Vec<Record>) -> Result<(), Refusal> {
        self.materialize_as(records, Durability::Synced).await
    }

    pub(super) async fn materialize_as(&mut self, records: Vec<Record>, durability: Durability) -> Result<(), Refusal> {
        if self.view.persistence() != Persistence::Pending || self.running.is_some() {
            return Ok(());
        }
        let (mut recorder, memory) = self.prepare().await?;
        let mut meta = self.meta.clone();
        meta.git = crate::git::facts(&self.settings.cwd).await;
        let model = self.profile.model(&self.settings.model);
        meta.base_instructions = Some(BaseInstructions { text: self.instructions(&model).to_string() });
        recorder.note(&Record::SessionMeta(meta))?;
        for record in &records {
            recorder.note(record)?;
        }
        recorder.flush(durability).await?;
        self.memory = Some(Box::new(memory));
        self.view.mark_stored();
        Ok(())
    }

    /// Appends a record while no turn is running.
    pub(super) async fn append_idle(&mut self, record: &Record) -> Result<(), Refusal> {
        if self.view.persistence() != Persistence::Stored {
            return Ok(());
        }
        let (mut recorder, mut memory) = self.prepare().await?;
        recorder.note(record)?;
        recorder.flush(Durability::Flushed).await?;
        if let Some(conversation) = &mut memory.conversation {
            conversation.end = recorder.end;
        }
        self.memory = Some(Box::new(memory));
        Ok(())
    }

    pub(super) async fn record_item(&mut self, item: ResponseItem) -> Result<(), Refusal> {
        let (mut recorder, mut memory) = self.prepare().await?;
        recorder.note(&Record::ResponseItem(item.clone()))?;
        if self.view.persistence() == Persistence::Stored {
            recorder.flush(Durability::Flushed).await?;
        }
        let conversation = memory.conversation.get_or_insert_default();
        conversation.push(&item);
        conversation.end = recorder.end;
        self.memory = Some(Box::new(memory));
        Ok(())
    }
}

//! Rolling back the last turns of a thread.

use loomd_protocol::{ServerNotification, Thread as WireThread, ThreadTokenUsageUpdatedNotification, Turn as WireTurn};
use loomd_store::rollout::{Event, Record, ThreadRolledBack, TokenCount, TokenUsage, TokenUsageInfo};
use loomd_store::{Batch, Durability};
use uuid::Uuid;

use super::op::Reply;
use super::state::Thread;
use crate::history::{self};
use crate::refusal::Refusal;
use crate::turn::usage;
use crate::view::Persistence;

impl Thread {
    /// Records that the last turns are rolled back. The rollout keeps their records.
    pub(super) async fn roll_back(&mut self, turns: u32, reply: Reply<WireThread>) {
        match self.take_back(turns).await {
            Ok((thread, usage)) => {
                if let Some(usage) = usage {
                    self.publish_usage(usage).await;
                }
                reply(Ok(thread));
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    async fn take_back(&mut self, turns: u32) -> Result<(WireThread, Option<TokenUsageInfo>), Refusal> {
        if self.running.is_some() {
            return Err(Refusal::invalid("Cannot rollback while a turn is in progress."));
        }
        match self.view.persistence() {
            Persistence::Stored => {}
            Persistence::Ephemeral => {
                return Err(Refusal::invalid("thread rollback requires a persisted rollout path"));
            }
            Persistence::Pending => {
                let path = self.view.path().unwrap_or_default();
                return Err(Refusal::invalid(format!(
                    "failed to load rollout `{path}` for rollback replay: No such file or directory (os error 2)"
                )));
            }
        }
        // The conversation has changed.
        self.memory = None;
        let reader = self.reader()?;
        let usage = history::last_usage(reader).await?;
        let mut batch = Batch::new();
        batch.push(&Record::EventMsg(Event::ThreadRolledBack(ThreadRolledBack { num_turns: turns })))?;
        reader.writer().await?.append(batch, Durability::Synced).await?;
        let thread = self.show(true).await?;
        let usage = match usage {
            Some(usage) => Some(self.record_usage(usage, &thread.turns).await?),
            None => None,
        };
        Ok((thread, usage))
    }

    /// Records the usage after a rollback: the total stays, the last usage is estimated from what is left.
    pub(super) async fn record_usage(
        &self,
        mut usage: TokenUsageInfo,
        left: &[WireTurn],
    ) -> Result<TokenUsageInfo, Refusal> {
        usage.last_token_usage = TokenUsage { total_tokens: estimate(left), ..TokenUsage::default() };
        let count = TokenCount { info: Some(usage), rate_limits: None };
        let mut batch = Batch::new();
        batch.push(&Record::EventMsg(Event::TokenCount(count)))?;
        self.reader()?.writer().await?.append(batch, Durability::Synced).await?;
        Ok(usage)
    }

    async fn publish_usage(&self, usage: TokenUsageInfo) {
        let updated = ThreadTokenUsageUpdatedNotification {
            thread_id: self.id.to_string(),
            // It belongs to no turn, but the field is required.
            turn_id: Uuid::new_v5(self.id.as_uuid(), b"rollback").to_string(),
            token_usage: usage::wire(&usage),
        };
        self.events.publish(ServerNotification::ThreadTokenUsageUpdated(updated)).await;
    }
}

/// Four bytes a token, over the texts of the items.
fn estimate(turns: &[WireTurn]) -> i64 {
    use loomd_protocol::{ThreadItem, UserInput};
    let bytes: usize = turns
        .iter()
        .flat_map(|turn| &turn.items)
        .map(|item| match item {
            ThreadItem::AgentMessage { text, .. } | ThreadItem::Plan { text, .. } => text.len(),
            ThreadItem::UserMessage { content, .. } => content
                .iter()
                .map(|input| match input {
                    UserInput::Text { text, .. } => text.len(),
                    _ => 0,
                })
                .sum(),
            ThreadItem::CommandExecution { command, aggregated_output, .. } => {
                command.len() + aggregated_output.as_ref().map_or(0, String::len)
            }
            _ => 0,
        })
        .sum();
    i64::try_from(bytes / 4).unwrap_or(i64::MAX)
}

//! Cutting a thread back to before a turn, and adding items to its conversation.

use loomd_protocol::{ResponseItem, ServerNotification, ThreadRevertedNotification, Turn as WireTurn};
use loomd_store::rollout::{Event, Record, ThreadRolledBack};
use loomd_store::{Batch, Durability};

use super::op::{Reply, Reverted};
use super::state::Thread;
use crate::history;
use crate::inbox::Input;
use crate::paging::newest_cursors;
use crate::refusal::Refusal;
use crate::view::Persistence;

impl Thread {
    /// Cuts off the turn with the id `before` and all later ones; a running turn is interrupted first. The rollout keeps
    /// their records, and files of the workspace stay as they are.
    pub(super) async fn revert(&mut self, before: String, reply: Reply<Reverted>) {
        match self.cut_before(&before).await {
            Ok(reverted) => {
                reply(Ok(reverted));
                let reverted = ThreadRevertedNotification { thread_id: self.id.to_string() };
                self.broadcast(ServerNotification::ThreadReverted(reverted)).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    async fn cut_before(&mut self, before: &str) -> Result<Reverted, Refusal> {
        match self.view.persistence() {
            Persistence::Ephemeral => return Err(Refusal::invalid("ephemeral threads do not support thread/revert")),
            Persistence::Pending => return Err(not_found(before)),
            Persistence::Stored => {}
        }
        // Checked before anything is changed.
        position(&history::turns(self.reader()?, true).await?, before)?;
        if self.running.is_some() {
            self.stop_turns().await;
        }
        if self.running.is_some() {
            return Err(Refusal::failed("the running turn could not be stopped"));
        }
        let mut turns = history::turns(self.reader()?, false).await?;
        let kept = position(&turns, before)?;
        let num_turns = u32::try_from(turns.len() - kept).unwrap_or(u32::MAX);
        turns.truncate(kept);
        // The conversation has changed.
        self.memory = None;
        let usage = history::last_usage(self.reader()?).await?;
        let mut batch = Batch::new();
        batch.push(&Record::EventMsg(Event::ThreadRolledBack(ThreadRolledBack { num_turns })))?;
        self.reader()?.writer().await?.append(batch, Durability::Synced).await?;
        if let Some(usage) = usage {
            self.record_usage(usage, &turns).await?;
        }
        let (turns_backwards_cursor, items_backwards_cursor) = newest_cursors(&turns);
        Ok(Reverted { thread: self.show(false).await?, turns_backwards_cursor, items_backwards_cursor })
    }

    /// Adds items to the conversation: to the next call of a running turn, else before the next message. They are stored
    /// at once, and no items of a turn.
    pub(super) async fn inject(&mut self, items: Vec<ResponseItem>, reply: Reply<()>) {
        reply(self.add_items(items).await);
    }

    async fn add_items(&mut self, items: Vec<ResponseItem>) -> Result<(), Refusal> {
        self.materialize(Vec::new()).await?;
        for item in items {
            let item = match &self.running {
                Some(running) => match running.inbox.put(Input::Injected(Box::new(item))) {
                    Ok(()) => continue,
                    Err(Input::Injected(item)) => *item,
                    Err(Input::User(_) | Input::Agent { .. }) => continue,
                },
                None => item,
            };
            if self.running.is_some() {
                return Err(Refusal::invalid("the running turn takes no more items; retry when it has ended"));
            }
            self.record_item(item).await?;
        }
        Ok(())
    }
}

fn position(turns: &[WireTurn], id: &str) -> Result<usize, Refusal> {
    turns.iter().position(|turn| turn.id == id).ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> Refusal {
    Refusal::invalid(format!("turn not found: {id}"))
}

//! Requests about the queue of a thread, loaded or not.

use std::path::Path;

use loomd_protocol::{QueuedSubmission, ServerNotification, ThreadQueueListResponse, Turn, UserInput};
use loomd_store::{Error, ThreadId};

use crate::goal_requests::{direct_input, has_path, is_directed};
use crate::history;
use crate::input::resolve;
use crate::refusal::Refusal;
use crate::thread::{Op, Reply, not_added, queue_changed};
use crate::threads::Threads;
use crate::turn_requests::check_size;
use crate::view::Persistence;

/// The number of messages on a page when the client does not say, and the most.
const PAGE: u32 = 25;
const MAX_PAGE: u32 = 100;

impl Threads {
    /// Queues a user message. On an idle thread it becomes a turn at once.
    pub async fn enqueue(
        &self,
        id: ThreadId,
        client_id: String,
        input: Vec<UserInput>,
        reply: Reply<QueuedSubmission>,
    ) {
        let _lane = self.lanes.enter(id).await;
        let checked = async {
            let cwd = self.check_queue(id, true).await?;
            check_input(&input, &cwd).await
        };
        if let Err(refusal) = checked.await {
            return reply(Err(refusal));
        }
        let op = Op::Enqueue { client_id, input, reply };
        if let Err(Op::Enqueue { client_id, input, reply }) = self.send(id, op).await {
            let queued = self.store.work().enqueue(id, client_id.clone(), input).await;
            let added = matches!(queued, Ok(loomd_store::Enqueued::Added(_)));
            reply(queued.map_err(Into::into).and_then(|queued| not_added(queued, &client_id)));
            if added {
                self.broadcast_about(queue_changed(id)).await;
            }
        }
    }

    /// A page of the messages that wait.
    pub async fn queue(
        &self,
        id: ThreadId,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<ThreadQueueListResponse, Refusal> {
        let _lane = self.lanes.enter(id).await;
        self.check_queue(id, false).await?;
        let offset = cursor
            .map_or(Ok(0), str::parse::<usize>)
            .map_err(|error| Refusal::invalid(format!("invalid queue pagination cursor: {error}")))?;
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE) as usize;
        let page = self.store.work().queue_page(id, offset, limit).await?;
        let next = offset.saturating_add(page.messages.len());
        Ok(ThreadQueueListResponse {
            stalled: !page.messages.is_empty() && self.is_stalled(id).await,
            data: page.messages.iter().map(|message| message.to_wire()).collect(),
            next_cursor: page.more.then(|| next.to_string()),
        })
    }

    /// Replaces the input of a message that waits.
    pub async fn update_queued(
        &self,
        id: ThreadId,
        message: String,
        input: Vec<UserInput>,
        reply: Reply<QueuedSubmission>,
    ) {
        let _lane = self.lanes.enter(id).await;
        let updated = async {
            let cwd = self.check_queue(id, true).await?;
            check_input(&input, &cwd).await?;
            let updated = self.store.work().update_queued(id, message.clone(), input).await?;
            updated.ok_or_else(|| Refusal::invalid(format!("queued submission not found: {message}")))
        };
        let updated = updated.await;
        let changed = updated.is_ok();
        reply(updated.map(|message| message.to_wire()));
        self.queue_changed(id, changed).await;
    }

    /// Removes a message that waits; whether there was one.
    pub async fn delete_queued(&self, id: ThreadId, message: String, reply: Reply<bool>) {
        let _lane = self.lanes.enter(id).await;
        let deleted = async {
            self.check_queue(id, true).await?;
            Ok(self.store.work().delete_queued(id, message).await?)
        };
        let deleted = deleted.await;
        let changed = matches!(deleted, Ok(true));
        reply(deleted);
        self.queue_changed(id, changed).await;
    }

    /// Puts the messages that wait into another order.
    pub async fn reorder_queue(&self, id: ThreadId, order: Vec<String>, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        let reordered = async {
            self.check_queue(id, true).await?;
            match self.store.work().reorder_queue(id, order).await? {
                true => Ok(()),
                false => Err(Refusal::invalid("queue reorder must include every queued submission exactly once")),
            }
        };
        let reordered = reordered.await;
        let changed = reordered.is_ok();
        reply(reordered);
        self.queue_changed(id, changed).await;
    }

    /// Starts the turn of a message that waits: of the first one unless `message` names another.
    pub async fn start_queued(&self, id: ThreadId, message: Option<String>, reply: Reply<Turn>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(refusal) = self.check_queue(id, true).await {
            return reply(Err(refusal));
        }
        if let Err(Op::StartQueued { reply, .. }) = self.send(id, Op::StartQueued { message, reply }).await {
            reply(Err(Refusal::invalid("resume the thread before starting a queued message")));
        }
    }

    async fn queue_changed(&self, id: ThreadId, changed: bool) {
        if !changed {
            return;
        }
        let notification: ServerNotification = queue_changed(id);
        match self.get(id) {
            Some(loaded) => loaded.events.publish(notification).await,
            None => self.broadcast_about(notification).await,
        }
    }

    /// Whether the queue waits because the last turn was interrupted.
    async fn is_stalled(&self, id: ThreadId) -> bool {
        if self.get(id).is_some_and(|loaded| loaded.view.running_turn().is_some()) {
            return false;
        }
        let interrupted = async { history::ends_interrupted(&*self.store.open(id).await?).await };
        interrupted.await.unwrap_or(false)
    }

    /// Refuses threads that have no queue. Returns the working directory of the thread.
    async fn check_queue(&self, id: ThreadId, changes: bool) -> Result<String, Refusal> {
        if let Some(loaded) = self.get(id) {
            let thread = loaded.view.thread();
            if loaded.view.persistence() == Persistence::Ephemeral {
                return Err(Refusal::invalid(format!("ephemeral thread does not support queued submissions: {id}")));
            }
            let directed = matches!(&thread.source, loomd_protocol::SessionSource::SubAgent(agent) if has_path(agent));
            direct_input(changes && directed)?;
            return Ok(thread.cwd);
        }
        let stored = self.store.find(id, None).await.map_err(|error| match error {
            Error::NotFound { .. } => Refusal::not_found(id),
            other => other.into(),
        })?;
        if stored.archived {
            return Err(Refusal::invalid(format!(
                "session {id} is archived. Run `codex unarchive {id}` to unarchive it first."
            )));
        }
        direct_input(changes && is_directed(&stored))?;
        Ok(stored.meta.cwd)
    }
}

/// Refuses input that cannot become a turn.
async fn check_input(input: &[UserInput], cwd: &str) -> Result<(), Refusal> {
    if input.is_empty() {
        return Err(Refusal::invalid("only user input can be added to the user-message queue"));
    }
    check_size(input)?;
    for part in input {
        if let UserInput::LocalImage { path } | UserInput::LocalAudio { path } = part {
            let path = resolve(cwd, path);
            tokio::fs::metadata(Path::new(&path))
                .await
                .map_err(|error| Refusal::invalid(format!("local queued attachment is invalid: {error}")))?;
        }
    }
    Ok(())
}

//! Requests about a thread as a whole, loaded or not: its name, git facts, archive and deletion; for loaded threads
//! also recent events.

use std::sync::Arc;

use loomd_protocol::{
    ServerNotification, Thread as WireThread, ThreadArchivedNotification, ThreadAttachmentOperation,
    ThreadAttachmentUpdatedNotification, ThreadDeletedNotification, ThreadUnarchivedNotification,
};
use loomd_store::{Error, GitPatch, ThreadId};

use crate::event::{Event, EventId, EventKind};
use crate::event_sink::Audience;
use crate::refusal::Refusal;
use crate::thread::{Op, Reply, add_side_facts, name_updated};
use crate::threads::Threads;
use crate::view::Persistence;

impl Threads {
    /// The events of a loaded thread after one of them. `None` when the log no longer reaches back that far.
    pub fn events_after(&self, id: ThreadId, after: EventId) -> Option<Vec<Event>> {
        self.get(id)?.events.after(after)
    }

    /// Publishes an event of a thread that is not loaded to every client.
    pub(crate) async fn broadcast_about(&self, notification: ServerNotification) {
        let event = Event::new(EventId::unlogged(), EventKind::Notification(Arc::new(notification)));
        self.event_sink.send(Audience::Everyone { subscribers: &[], joining: &[] }, &event).await;
    }

    pub async fn rename(&self, id: ThreadId, name: String, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Rename { name, reply }) = self.send(id, Op::Rename { name, reply }).await {
            self.rename_stored(id, name, reply).await;
        }
    }

    async fn rename_stored(&self, id: ThreadId, name: String, reply: Reply<()>) {
        let renamed = async {
            self.store.find(id, Some(false)).await.map_err(|error| not_found(id, error))?;
            Ok(self.store.rename(id, &name).await?)
        };
        let renamed = renamed.await;
        let told = renamed.is_ok();
        reply(renamed);
        if told {
            self.broadcast_about(name_updated(id, name)).await;
        }
    }

    /// Changes the stored git facts of a thread. `check` validates the values once the thread was found.
    pub async fn patch_git(
        &self,
        id: ThreadId,
        patch: GitPatch,
        provider: &str,
        check: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<WireThread, Refusal> {
        let _lane = self.lanes.enter(id).await;
        let live = self.get(id);
        match live.as_ref().map(|loaded| loaded.view.persistence()) {
            Some(Persistence::Ephemeral) => {
                return Err(Refusal::invalid(format!("ephemeral thread does not support metadata updates: {id}")));
            }
            Some(Persistence::Pending) => {
                check()?;
                self.store.patch_git(id, &patch).await?;
                let mut thread = live.map(|loaded| loaded.view.thread()).ok_or_else(|| Refusal::not_found(id))?;
                add_side_facts(&*self.store, id, &mut thread).await?;
                return Ok(thread);
            }
            _ => {}
        }
        self.store.find(id, None).await.map_err(|error| not_found(id, error))?;
        check()?;
        self.store.patch_git(id, &patch).await?;
        let stored = self.store.find(id, None).await.map_err(|error| not_found(id, error))?;
        Ok(self.wire(&stored, provider))
    }

    /// Archives a thread. A loaded one is unloaded first.
    pub async fn archive(&self, id: ThreadId, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        let archived = async {
            self.store.find(id, Some(false)).await?;
            self.unload(id).await;
            Ok(self.store.archive(id).await?)
        };
        let archived = archived.await;
        let told = archived.is_ok();
        reply(archived);
        if told {
            let archived = ThreadArchivedNotification { thread_id: id.to_string() };
            self.broadcast_about(ServerNotification::ThreadArchived(archived)).await;
        }
    }

    pub async fn unarchive(&self, id: ThreadId, provider: &str, reply: Reply<WireThread>) {
        let _lane = self.lanes.enter(id).await;
        let fetched = async {
            self.store.find(id, Some(true)).await.map_err(|error| match error {
                Error::NotFound { .. } => Refusal::invalid(format!("no archived rollout found for thread id {id}")),
                other => other.into(),
            })?;
            let mut thread = self.wire(&self.store.unarchive(id).await?, provider);
            self.facts(id).await.show_in(&mut thread);
            Ok(thread)
        };
        let fetched = fetched.await;
        let told = fetched.is_ok();
        reply(fetched);
        if told {
            let unarchived = ThreadUnarchivedNotification { thread_id: id.to_string() };
            self.broadcast_about(ServerNotification::ThreadUnarchived(unarchived)).await;
        }
    }

    /// Deletes a thread. A loaded one is unloaded first.
    pub async fn delete(&self, id: ThreadId, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        let deleted = async {
            self.store.find(id, None).await?;
            self.unload(id).await;
            self.store.delete(id).await?;
            let attached = self.services.organiser.run(move |organiser| organiser.deleted(id)).await;
            Ok(attached.unwrap_or_else(|error| {
                tracing::warn!(%error, thread = %id, "what users added to a deleted thread could not be removed");
                Vec::new()
            }))
        };
        match deleted.await {
            Ok(attached) => {
                reply(Ok(()));
                for attachment in attached {
                    let notification = ThreadAttachmentUpdatedNotification {
                        thread_id: id.to_string(),
                        attachment_type: attachment.attachment_type,
                        identity_key: attachment.identity_key,
                        attachment_id: attachment.id,
                        operation: ThreadAttachmentOperation::Deleted,
                    };
                    self.broadcast_about(ServerNotification::ThreadAttachmentUpdated(notification)).await;
                }
                let deleted = ThreadDeletedNotification { thread_id: id.to_string() };
                self.broadcast_about(ServerNotification::ThreadDeleted(deleted)).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }
}

fn not_found(id: ThreadId, error: Error) -> Refusal {
    match error {
        Error::NotFound { .. } => Refusal::not_found(id),
        other => other.into(),
    }
}

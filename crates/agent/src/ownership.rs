//! Which threads this process may load, where several processes share a store.

use std::pin::Pin;
use std::sync::Arc;

use loomd_protocol::ThreadStatus;
use loomd_store::ThreadId;

use crate::event_sink::Subscriber;
use crate::refusal::Refusal;

/// The epoch of an ownership, or why there is none.
pub type Owning<'a> = Pin<Box<dyn Future<Output = Result<u64, Refusal>> + Send + 'a>>;

/// Decides which threads this process may load. Without one it may load all.
pub trait Ownership: Send + Sync {
    /// Takes a thread for as long as it is loaded. The epoch, in seconds, is greater than that of every earlier owner of
    /// the thread.
    fn own(&self, id: ThreadId) -> Owning<'_>;

    /// Whether the session counts as live by this process's clock. While it does, no other process has written to the
    /// threads that it owns.
    fn is_live(&self) -> bool;

    /// A loaded thread ends without a word because its records could not be written. Its subscribers have to be notified.
    fn gave_up(&self, id: ThreadId, subscribers: Vec<Subscriber>);

    /// The thread is no longer loaded, or could not be loaded.
    fn unloaded(&self, id: ThreadId);

    /// The status of a thread that another process has loaded.
    fn status_elsewhere(&self, id: ThreadId) -> Option<ThreadStatus>;
}

/// A thread of this process that is about to be loaded. It is let go when this is dropped.
pub(crate) struct OwnedThread {
    id: ThreadId,
    epoch: u64,
    ownership: Arc<dyn Ownership>,
    is_loaded: bool,
}

impl OwnedThread {
    pub async fn new(ownership: &Arc<dyn Ownership>, id: ThreadId) -> Result<Self, Refusal> {
        let epoch = match ownership.own(id).await {
            Ok(epoch) => epoch,
            Err(refusal) => {
                // It may have been taken over, for its turn.
                ownership.unloaded(id);
                return Err(refusal);
            }
        };
        Ok(Self { id, epoch, ownership: Arc::clone(ownership), is_loaded: false })
    }

    /// The thread is registered as loaded, and let go when it is unloaded. What was read of it since it is owned
    /// is right as long as it is owned under this epoch.
    pub fn loaded(mut self) -> u64 {
        self.is_loaded = true;
        self.epoch
    }
}

impl Drop for OwnedThread {
    fn drop(&mut self) {
        if !self.is_loaded {
            self.ownership.unloaded(self.id);
        }
    }
}

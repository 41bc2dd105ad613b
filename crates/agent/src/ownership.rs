//! Which threads this process may load, where several processes share a store.

use std::pin::Pin;
use std::sync::Arc;

use loomd_protocol::ThreadStatus;
use loomd_store::ThreadId;

use crate::refusal::Refusal;

/// The epoch of an ownership, or why there is none.
pub type Owning<'a> = Pin<Box<dyn Future<Output = Result<u64, Refusal>> + Send + 'a>>;

/// Decides which threads this process may load. Without one it may load all.
pub trait Ownership: Send + Sync {
    /// Takes a thread for as long as it is loaded. The epoch, in seconds, is greater than that of every earlier owner of
    /// the thread.
    fn own(&self, id: ThreadId) -> Owning<'_>;

    /// Whether what this process owns is its own still, as far as it knows without asking. When it says so, no other process
    /// has written to those threads until now.
    fn is_live(&self) -> bool;

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
        let epoch = ownership.own(id).await?;
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

//! Which threads this process may load, where several processes share a store.

use std::pin::Pin;

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

    /// The thread is no longer loaded, or could not be loaded.
    fn unloaded(&self, id: ThreadId);

    /// The status of a thread that another process has loaded.
    fn status_elsewhere(&self, id: ThreadId) -> Option<ThreadStatus>;
}

//! What callers need of a place that keeps threads. The embedded default is [`crate::FileStore`]; a shared
//! database can stand in for it.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use jiff::Timestamp;

use crate::journal::{Appended, Durability, Extent};
use crate::{Batch, GitPatch, Lease, ListQuery, Page, Result, StoredThread, ThreadId, Window};

/// The answer of a store, some time later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Keeps threads. Reading and listing need no lease; changing a thread's history does.
pub trait Store: Send + Sync {
    /// Gives a new thread its place. Nothing is stored until the first append.
    fn place(&self, id: ThreadId, created: Timestamp) -> PathBuf;

    /// Takes up the rollout at any path; from then on its thread is stored there.
    fn adopt<'a>(&'a self, path: &'a Path) -> Answer<'a, StoredThread>;

    /// Forgets what was kept in memory for a thread that is no longer loaded.
    fn release(&self, id: ThreadId);

    /// The right to change a thread, until it is dropped. Fails with [`crate::Error::Held`].
    fn lease(&self, id: ThreadId) -> Answer<'_, Lease>;

    /// Appends a batch whole, or nothing. It is with the operating system when the answer comes.
    fn append<'a>(&'a self, lease: &'a Lease, batch: &'a Batch, durability: Durability) -> Answer<'a, Appended>;

    /// How far a thread has come.
    fn extent(&self, id: ThreadId) -> Answer<'_, Extent>;

    /// Whole lines from an offset on: at most `limit` bytes, but at least one line. Empty at the end.
    fn read(&self, id: ThreadId, from: u64, limit: usize) -> Answer<'_, Window>;

    /// Whole lines up to an offset, or to the end: at most `limit` bytes, but at least one line. Empty at
    /// the beginning.
    fn read_back(&self, id: ThreadId, to: Option<u64>, limit: usize) -> Answer<'_, Window>;

    /// What [`Store::keep_derived`] was last given for a thread. It may be lost at any time, and be older than the
    /// rollout.
    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>>;

    /// Keeps something that was made from a rollout and can be made again.
    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()>;

    /// A stored thread. `archived` asks for one of the two sorts, `None` for either.
    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread>;

    /// One page of stored threads.
    fn list(&self, query: ListQuery) -> Answer<'_, Page>;

    /// The name that was given to a thread, stored or not.
    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>>;

    /// Names a thread, stored or not.
    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()>;

    /// Puts an active thread away.
    fn archive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, PathBuf>;

    /// Fetches an archived thread back; it counts as changed now.
    fn unarchive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, StoredThread>;

    /// Removes a thread for good, active or archived.
    fn delete<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()>;

    /// The changes that clients made to the git facts of a thread, stored or not.
    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>>;

    /// Changes the git facts of a thread, stored or not.
    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()>;
}

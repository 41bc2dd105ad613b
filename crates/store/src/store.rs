//! What callers need of a place that keeps threads. [`crate::FileStore`] is the default, [`crate::MemoryStore`] is for
//! tests; a shared database can stand in for either. `loomd_store::suite` holds what every implementation must do.
//!
//! A thread is opened once and used through its [`Reader`] and, for the length of a change, a [`Writer`]. Both let go of
//! what they hold when they are dropped, so that nothing has to be released by hand.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::search::{SearchPage, SearchQuery};
use crate::{
    Batch, GitPatch, ListQuery, Page, Position, Result, SharedStore, StoredThread, ThreadId, Window, WorkStore,
};

/// The result of a store operation, later. Dropping it before it is ready never leaves half a change behind.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Keeps threads. Reading and listing need no lease; changing a thread's records does.
pub trait Store: Send + Sync {
    /// Opens a new thread. Nothing is stored until the first append.
    fn create(&self, id: ThreadId, created: Timestamp) -> Arc<dyn Reader>;

    /// Opens a stored thread, active or archived. Fails with [`crate::Error::NotFound`].
    fn open(&self, id: ThreadId) -> Answer<'_, Arc<dyn Reader>>;

    /// A stored thread without its records. `archived` selects one of the two sorts, `None` either.
    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread>;

    /// One page of stored threads.
    fn list(&self, query: ListQuery) -> Answer<'_, Page>;

    /// One page of the threads in whose messages a term occurs.
    fn search(&self, query: SearchQuery) -> Answer<'_, SearchPage>;

    /// The name that was given to a thread, stored or not.
    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>>;

    /// Names a thread, stored or not.
    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()>;

    /// Archives an active thread under a lease of its own; fails with [`crate::Error::Held`] while a writer has it.
    fn archive(&self, id: ThreadId) -> Answer<'_, ()>;

    /// Makes an archived thread active again, under a lease of its own. It counts as changed now.
    fn unarchive(&self, id: ThreadId) -> Answer<'_, StoredThread>;

    /// Removes a thread for good, active or archived, under a lease of its own.
    fn delete(&self, id: ThreadId) -> Answer<'_, ()>;

    /// The changes that clients made to the git facts of a thread, stored or not.
    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>>;

    /// Changes the git facts of a thread, stored or not.
    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()>;

    /// What [`Store::keep_derived`] was last given for a thread. It may be lost at any time, and be older than the
    /// thread's records.
    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>>;

    /// Keeps something that was made from a thread's records and can be made again. It ends with the thread.
    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()>;

    /// The goals and queues of the threads.
    fn work(&self) -> &WorkStore;

    /// The notes about unfinished turns; `None` for a store that keeps none.
    fn turn_notes(&self) -> Option<&dyn TurnNotes> {
        None
    }

    /// What only a store that several nodes share can do; `None` for other stores.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }

    /// What only a store of files can do; `None` for other stores.
    fn files(&self) -> Option<&dyn FileBacked> {
        None
    }
}

/// An open thread: reads its records, and takes its lease. Shared by cloning the `Arc`.
pub trait Reader: Send + Sync {
    /// The thread.
    fn id(&self) -> ThreadId;

    /// The position after the last whole record.
    fn end(&self) -> Answer<'_, Position>;

    /// The records after a position, oldest first: at most `limit` bytes, but at least one record. Empty at the end.
    fn records_after(&self, position: Position, limit: usize) -> Answer<'_, Window>;

    /// The records before a position, or before the end, oldest first: at most `limit` bytes, but at least one record,
    /// and no gap between the last one and the position. Empty at the start.
    fn records_before(&self, position: Option<Position>, limit: usize) -> Answer<'_, Window>;

    /// Takes the thread's lease. Fails with [`crate::Error::Held`] while there is another writer, here or elsewhere.
    fn writer(&self) -> Answer<'_, Box<dyn Writer>>;
}

/// The right to change one thread, until it is dropped or taken over.
pub trait Lease: Send + Sync {
    /// Grows whenever another [`Reader`] takes the thread over, in this process or any other, also after a crash.
    /// Writers that one reader takes one after the other share an epoch unless another reader held the lease between
    /// them.
    fn epoch(&self) -> u64;

    /// Confirms the lease. Fails with [`crate::Error::StaleLease`] once it was taken over; nothing can be written then.
    fn renew(&self) -> Answer<'_, ()>;
}

/// Appends to one thread under its lease.
pub trait Writer: Lease {
    /// Appends a batch whole, or nothing. When the answer is ready, it is as safe as `durability` demands.
    ///
    /// Fails with [`crate::Error::StaleLease`] when the lease was taken over, and with [`crate::Error::NotFound`] when a
    /// stored thread is gone: it is not made anew.
    fn append(&mut self, batch: Batch, durability: Durability) -> Answer<'_, Appended>;
}

/// Notes about the unfinished turns of threads, from which another process takes them up. They survive the end of the
/// process, and are written by the holder of the thread's lease only. The store does not interpret them.
pub trait TurnNotes: Send + Sync {
    /// Replaces the notes of a thread by these lines, each with its line break: whole or not at all.
    fn replace(&self, id: ThreadId, lines: Vec<u8>) -> Answer<'_, ()>;

    /// Appends a line, with its line break, to the notes of a thread that has some.
    fn add(&self, id: ThreadId, line: Vec<u8>) -> Answer<'_, ()>;

    /// The notes of a thread. The last line may lack its end. Empty when there are none.
    fn read(&self, id: ThreadId) -> Answer<'_, Vec<u8>>;

    /// Removes the notes of a thread, if there are any.
    fn remove(&self, id: ThreadId) -> Answer<'_, ()>;

    /// The threads that have notes, in the order of their ids.
    fn threads(&self) -> Answer<'_, Vec<ThreadId>>;
}

/// What a store of files offers besides: the protocol shows the path of a thread, and can resume from one.
pub trait FileBacked: Send + Sync {
    /// The file of an open thread, which need not exist yet. `None` when no reader of the thread is left.
    fn path(&self, id: ThreadId) -> Option<PathBuf>;

    /// Opens the thread in a file, wherever that is. As long as a reader is left, the thread is stored there.
    fn adopt<'a>(&'a self, path: &'a Path) -> Answer<'a, (StoredThread, Arc<dyn Reader>)>;
}

/// Where a batch was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Before the batch's first record. Greater than the end that the writer knew when others have appended, too.
    pub start: Position,
    /// After the batch's last record.
    pub end: Position,
}

/// How safe a batch is when the append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Out of this process: survives its end.
    #[default]
    Flushed,
    /// On the disk: survives the end of the machine.
    Synced,
}

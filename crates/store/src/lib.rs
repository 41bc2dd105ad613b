//! Threads at rest. A thread is a rollout: an append-only file of JSON lines that the reference server
//! reads and writes too. This crate keeps rollouts, their names, archive and index, and does not
//! interpret what an item means: turns are rebuilt elsewhere.
//!
//! Where to start: [`Store`] for what can be done, [`rollout`] for the records, [`FileStore`] for how they are kept.

mod batch;
mod error;
mod file;
mod git_info;
mod head;
mod list;
mod memory;
pub mod path;
mod position;
pub mod rollout;
pub mod search;
mod shared;
mod signature;
mod store;
#[cfg(feature = "suite")]
pub mod suite;
mod thread;
mod thread_id;
mod window;
mod work;

pub use batch::Batch;
pub use error::{Error, Failure, Result};
pub use file::{FileStore, Options};
pub use git_info::GitPatch;
pub use head::{Head, preview, read as read_head, slim as slim_meta};
pub use list::{BadCursor, BadQuery, Cursor, Kind, ListQuery, Page, cwd_spellings, page_limit};
pub use memory::MemoryStore;
pub use position::Position;
pub use shared::{NodeFacts, NodeRow, PoolFigures, SharedStore, Taking};
pub use store::{Answer, Appended, Durability, FileBacked, Lease, Reader, Store, TurnNotes, Writer};
pub use thread::StoredThread;
pub use thread_id::ThreadId;
pub use window::{StoredLine, Window};
pub use work::{
    ApprovalEnd, ApprovalOutcome, ApprovalQuery, ClaimedMessage, Decider, EarlierRequest, Enqueued, Goal, GoalChange,
    MAX_QUEUED, QueuePage, QueuedMessage, REMEMBERED, RequestKey, Settled, SharedWork, StaleApprovals, StoredApproval,
    WorkStore,
};

//! Threads at rest. A thread is a rollout: an append-only file of JSON lines that the reference server
//! reads and writes too. This crate keeps rollouts, their names, archive and index, and does not
//! interpret what an item means: turns are rebuilt elsewhere.
//!
//! Where to start: [`Store`] for what can be done, [`rollout`] for what a line says, [`FileStore`] for how
//! it is kept.

mod archive;
mod batch;
mod descriptors;
mod error;
mod file_store;
mod git_info;
mod head;
mod index;
mod journal;
mod lease;
mod list;
mod names;
pub mod path;
pub mod rollout;
mod side_file;
mod store;
mod thread;
mod thread_id;
mod window;

pub use batch::Batch;
pub use error::{Error, Result};
pub use file_store::{FileStore, Options};
pub use git_info::GitPatch;
pub use head::preview;
pub use journal::{Appended, Durability, Extent};
pub use lease::Lease;
pub use list::{BadCursor, Cursor, ListQuery, Page};
pub use store::{Answer, Store};
pub use thread::StoredThread;
pub use thread_id::ThreadId;
pub use window::Window;

//! What git knows about a folder: its repository, the commit, branch and origin of a thread's record, and
//! the difference to what is pushed.
//!
//! [`Repository`] and [`facts`] read git's files, so they cost microseconds and work without the program.
//! Only [`diff_to_remote`], [`merge_base`], and facts that stand in files of an unusual kind, ask the program, through a
//! [`Launcher`] that confines it.

mod branch;
mod config;
mod diff;
mod facts;
mod program;
mod repository;

pub use branch::{is_repository, merge_base};
pub use diff::{RemoteDiff, diff_to_remote};
pub use facts::{Facts, facts};
pub use program::{GitOutput, Invocation, Launcher};
pub use repository::Repository;

//! Information about the git repository of a folder: its location, the commit, branch and origin for a thread's
//! metadata, and the diff to the nearest pushed commit.
//!
//! [`Repository`] and [`facts`] read git's files, so they take microseconds and work without the program. Only
//! [`diff_to_remote`], the functions about branches, and facts in unsupported formats run the program, through a [`Launcher`] that
//! confines it.

mod branch;
mod config;
mod diff;
mod facts;
mod program;
mod repository;

pub use branch::{default_branch, is_repository, merge_base};
pub use diff::{RemoteDiff, diff_to_remote};
pub use facts::{Facts, facts};
pub use program::{GitOutput, Invocation, Launcher};
pub use repository::Repository;

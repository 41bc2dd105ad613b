//! `fs/*`: reads, writes, lists, copies, removes and watches files on behalf of a client, with the server's own
//! permissions.
//!
//! Operations are plain functions that block; the caller keeps them off its event loop. [`Order`] serializes those
//! that touch the same path, and [`Watches`] reports changes.

mod copy;
mod error;
mod list;
mod order;
mod read;
mod remove;
mod watch;
mod write;

pub use copy::copy;
pub use error::FsError;
pub use list::{metadata, read_directory};
pub use order::{Access, Order, OrderGuard};
pub use read::{MAX_READ, read_file};
pub use remove::remove;
pub use watch::{Deliver, Owner, Watches};
pub use write::{create_directory, write_file};

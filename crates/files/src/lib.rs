//! Files on behalf of a client: reading, writing, listing, copying, removing and watching, anywhere that the
//! server itself may.
//!
//! Operations are plain functions that block; whoever calls them keeps them off its event loop. [`Order`]
//! lets those that touch the same path take effect in the order they were asked for, and [`Watches`] tells
//! about changes.

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

//! Opening threads: which settings a thread gets from the client's overrides, from what is stored and from the
//! configuration. `opener.rs` is what all threads are opened with, `resolve.rs` the rules.

mod client_command;
mod default_provider;
mod dynamic_tools;
mod enforcement;
mod models;
mod opener;
mod overrides;
mod resolve;
mod unapplied;

pub(crate) use dynamic_tools::check_dynamic_tools;
pub(crate) use enforcement::Enforcement;
pub(crate) use models::Models;
pub use models::Replay;
pub(crate) use opener::Opener;
pub use overrides::{ClientIdentity, ThreadOverrides};
pub(crate) use resolve::Restore;
pub(crate) use unapplied::Requested;

//! The agent: threads, turns and what they remember. Knows nothing about connections, request ids or
//! JSON-RPC: whoever asks brings a [`Reply`], whoever listens is a [`Subscriber`], and news goes out
//! through an [`Outlet`].
//!
//! Where to start: [`Threads`] for what can be asked, `thread` for the task that owns a loaded thread,
//! [`turns`] for how turns are rebuilt from a stored one.

mod fork;
mod git;
mod history;
pub mod images;
mod lanes;
mod outlet;
mod paging;
pub mod project_doc;
pub mod prompts;
mod refusal;
mod resume;
mod settings;
mod thread;
mod threads;
pub mod turns;

pub use outlet::{Audience, Outlet, Sending, Subscriber};
pub use paging::PageRequest;
pub use refusal::Refusal;
pub use settings::{Basis, Resolve, Resolved, Settings};
pub use thread::{Opened, Reply};
pub use threads::{NewThread, Source, Threads};

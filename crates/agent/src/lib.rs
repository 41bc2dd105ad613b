//! The agent: threads, turns and what they remember. Knows nothing about connections, request ids or
//! JSON-RPC: whoever asks brings a [`Reply`], whoever listens is a [`Subscriber`], and news goes out
//! through an [`EventSink`].
//!
//! Where to start: [`Threads`] for what can be asked, `thread` for the task that owns a loaded thread,
//! [`turns`] for how turns are rebuilt from a stored one.

mod agent_tree;
mod agents;
mod busy;
mod context;
mod conversation;
mod event_log;
mod event_sink;
mod fork;
mod git;
mod given_up;
mod guard;
mod history;
mod hooks;
mod images;
mod input;
mod lanes;
mod markers;
mod network;
mod notify;
mod outline;
mod pages;
mod paging;
mod partial;
mod project_doc;
pub mod prompts;
mod recorder;
mod refusal;
pub mod replay;
mod resume;
mod running;
mod services;
mod settings;
mod shell_memory;
mod terminals;
mod thread;
mod thread_requests;
mod threads;
mod tools;
mod truncate;
mod turn;
mod turn_requests;
pub mod turns;
mod view;

pub use event_sink::{Audience, EventSink, PendingRequest, SendFuture, Subscriber};
pub use network::{check_network, lay_for_client};
pub use paging::PageRequest;
pub use refusal::Refusal;
pub use services::Services;
pub use settings::{Basis, Profile, Resolve, Resolved, Settings};
pub use thread::{Opened, Reply};
pub use threads::{NewThread, Source, Threads};

//! The agent: threads, turns and what they remember. Knows nothing about connections, request ids or
//! JSON-RPC: a request brings a [`Reply`], clients are [`Subscriber`]s, events go out through an
//! [`EventSink`], and what a turn needs a client for is an [`Approval`] that any caller can decide.
//!
//! Where to start: [`Threads`] for what can be asked, `thread` for the task that owns a loaded thread,
//! [`turns`] for how turns are rebuilt from a stored one.

mod agent_tree;
mod agents;
mod approval;
mod busy;
mod context;
mod conversation;
mod event;
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

pub use approval::{Approval, ApprovalDecision, ApprovalId, ApprovalRequest, DecideError};
pub use event::{Event, EventId, EventKind};
pub use event_sink::{Audience, EventSink, SendFuture, Subscriber};
pub use network::{check_network, lay_for_client};
pub use paging::PageRequest;
pub use refusal::Refusal;
pub use services::Services;
pub use settings::{Basis, Profile, Resolve, Resolved, Settings};
pub use thread::{Opened, Reply};
pub use threads::{NewThread, Source, Threads};

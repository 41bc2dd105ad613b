//! The agent: threads, turns and their history. Knows no connections, request ids or JSON-RPC: a front end brings a
//! [`Reply`] with each request, names a [`Subscriber`] for each client, and gets events through an [`EventSink`]. What a
//! turn needs a client for is an [`Approval`] that any caller can decide.
//!
//! Where to start: [`Agent`] for opening threads, [`Threads`] for all other requests, `thread` for the task that owns a
//! loaded thread, [`turns`] for how turns are rebuilt from a rollout.

mod agent;
mod agent_tree;
mod agents;
mod app_requests;
mod approval;
mod busy;
mod confinement;
mod context;
mod conversation;
mod event;
mod event_log;
mod event_sink;
mod extensions;
mod fork;
mod git;
mod given_up;
mod grants;
mod guard;
mod history;
mod hooks;
mod host;
mod images;
mod inbox;
mod input;
mod lanes;
mod markers;
mod mcp;
mod message;
mod network;
mod notify;
mod open;
mod outline;
mod page_requests;
mod pages;
mod paging;
mod partial;
mod project_doc;
pub mod prompts;
mod realtime;
mod realtime_link;
mod realtime_requests;
mod recorder;
mod refusal;
pub mod replay;
mod resume;
mod services;
mod settings;
mod shell_memory;
mod terminals;
mod thread;
mod thread_requests;
mod threads;
mod tool_call;
mod tools;
mod truncate;
mod turn;
mod turn_cx;
mod turn_requests;
pub mod turns;
mod view;
mod visible;
mod working_directory;

pub use agent::{Agent, AgentOptions, Caller, ForkThread, ResumeThread, StartThread};
pub use app_requests::AccountApps;
pub use approval::{Approval, ApprovalDecision, ApprovalId, ApprovalRequest, DecideError};
pub use confinement::{ClientCommand, not_spawned};
pub use event::{Event, EventId, EventKind};
pub use event_sink::{Audience, EventSink, SendFuture, Subscriber};
pub use extensions::{Extensions, ThreadExtensions};
pub use mcp::{McpServices, StatusDetail};
pub use open::{ClientIdentity, Replay, ThreadOverrides};
pub use paging::PageRequest;
pub use refusal::{MAX_INPUT_CHARS, Refusal};
pub use services::Services;
pub use settings::{Basis, Profile, Resolve, ResolvedSettings, Settings};
pub use thread::{Opened, Reply};
pub use threads::{NewThread, Source, Threads};
pub use turn_requests::parse_id;
pub use working_directory::{absolute, working_directory};

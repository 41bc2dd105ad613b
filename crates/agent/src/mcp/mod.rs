//! The MCP servers of threads. A thread has a set of servers ([`ThreadServers`]) whose connections it shares with other
//! threads ([`loomd_mcp::Servers`]); their tools are offered by `tools/mcp`.

mod app_rules;
mod approve_always;
mod elicitation;
mod rules;
mod services;
mod startup;
mod status;
mod thread_server;
mod thread_servers;

pub(crate) use approve_always::approve_always;
pub(crate) use elicitation::TurnCaller;
pub(crate) use rules::ApprovalSubject;
pub use services::McpServices;
pub(crate) use services::{allowed_servers, apps_entry};
pub use status::StatusDetail;
pub(crate) use status::{page, statuses, thread_statuses};
pub(crate) use thread_server::ThreadServer;
pub(crate) use thread_servers::ThreadServers;

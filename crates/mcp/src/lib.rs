//! A client of MCP servers. [`Servers`] holds one [`Server`] per distinct configuration, shared by all threads; a
//! server is started when it is first needed, stopped when no thread uses it any more, and started again by the next
//! call when it has died.
//!
//! Knows neither threads nor turns: a call brings its [`Caller`], to which the server's progress notifications and
//! elicitations go. What a server sends is bounded before it is decoded (`limits.rs`).
//!
//! Where to start: [`Servers::get`], then [`Server::call_tool`].

mod backoff;
mod caller;
mod config;
mod connection;
mod credentials;
mod elicitation;
mod error;
mod in_flight;
mod inbound;
mod limits;
mod listing;
mod names;
mod result;
mod server;
mod servers;
mod set;
mod transport;

pub use caller::{BoxFuture, Caller, Progress};
pub use config::{Authorization, Endpoint, HttpServer, ServerConfig, StdioServer, is_valid_name};
pub use credentials::{Credentials, CredentialsError, NoCredentials};
pub use elicitation::{Elicitation, ElicitationAction, ElicitationAnswer, ElicitationMode};
pub use error::{CallError, StartError};
pub use limits::{MAX_MESSAGE, MAX_RESULT, MAX_TOOLS};
pub use listing::{Annotations, Listing, Tool};
pub use names::{NamedTool, model_name, model_names, sanitised};
pub use result::CallResult;
pub use server::{Attached, Phase, Resources, Server, ToolCall};
pub use servers::{ClientInfo, Servers, ServersOptions};
pub use set::{Origin, ServerSet, SetEntry};

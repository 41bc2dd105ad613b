//! Apps (connectors) of a ChatGPT account. The directory lists those that exist; the tools of the implicit MCP server
//! `codex_apps` say which of them the account can use.
//!
//! Where to start: [`AppLists`] answers `app/list`, [`server_entry`] is the MCP server, [`AppRules`] is what the
//! configuration says of its tools, [`ToolIndex`] finds tools by words. Knows neither threads nor connections.

mod account;
mod connector;
mod directory;
mod info;
mod lists;
mod mention;
mod names;
mod rules;
mod search;
mod server;
mod tools_cache;

pub use account::{Account, AppsAccount, BoxFuture};
pub use connector::{Connector, accessible};
pub use directory::{Backend, BackendResponse};
pub use info::{install_url, slug};
pub use lists::{AppLists, AppSettings, AppTools, ListError, PageError, Sources, page};
pub use mention::Mentions;
pub use names::{ToolNames, tool_names};
pub use rules::AppRules;
pub use search::ToolIndex;
pub use server::{SERVER, server_entry};
pub use tools_cache::ToolsCache;

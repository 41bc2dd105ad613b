//! The handlers, one file per family of methods. A handler checks its params, calls the owner of the state and maps
//! the error.

pub(crate) mod account;
pub(crate) mod apps;
pub(crate) mod attachments;
pub(crate) mod command_exec;
pub(crate) mod config;
pub(crate) mod diagnostics;
pub(crate) mod external_agent;
pub(crate) mod features;
pub(crate) mod feedback;
pub(crate) mod fs;
pub(crate) mod git;
pub(crate) mod goals;
pub(crate) mod mcp;
pub(crate) mod marketplace;
pub(crate) mod mcp_direct;
pub(crate) mod mcp_login;
pub(crate) mod memory;
pub(crate) mod mock;
pub(crate) mod model;
mod organise;
pub(crate) mod plugin;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod projects;
pub(crate) mod read_state;
pub(crate) mod realtime;
pub(crate) mod search;
pub(crate) mod sections;
pub(crate) mod skills;
pub(crate) mod summary;
pub(crate) mod thread;
pub(crate) mod thread_list;
pub(crate) mod thread_search;
pub(crate) mod turn;
pub(crate) mod windows;

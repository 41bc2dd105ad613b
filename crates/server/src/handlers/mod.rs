//! The handlers, one file per family of methods. A handler checks its params, calls the owner of the state and maps
//! the error.

pub(crate) mod account;
pub(crate) mod apps;
pub(crate) mod command_exec;
pub(crate) mod config;
pub(crate) mod external_agent;
pub(crate) mod features;
pub(crate) mod feedback;
pub(crate) mod fs;
pub(crate) mod git;
pub(crate) mod mcp;
pub(crate) mod mcp_login;
pub(crate) mod mock;
pub(crate) mod model;
pub(crate) mod plugin;
pub(crate) mod realtime;
pub(crate) mod search;
pub(crate) mod skills;
pub(crate) mod summary;
pub(crate) mod thread;
pub(crate) mod turn;
pub(crate) mod windows;

//! The tools that a model can call. Tools come from sources ([`ToolSource`]); a [`Toolbox`] is what one turn has of
//! them; [`Calls`] runs the calls of one answer. A tool can be called whether or not it is offered, unless it says
//! otherwise.

mod agents;
mod apply_patch;
mod built_in;
mod calls;
mod client;
mod collaboration;
mod command;
mod cx;
mod deltas;
mod exec_command;
mod goals;
mod hosted;
mod mcp;
mod net_diff;
mod request_permissions;
mod request_user_input;
mod scope;
mod shell;
mod shell_command;
mod source;
mod spec;
mod tool;
mod toolbox;
mod update_plan;
mod view_image;
mod write_stdin;

pub(crate) use built_in::BuiltInTools;
pub(crate) use calls::Calls;
pub(crate) use client::ClientTools;
pub(crate) use command::{CommandTask, run as run_command};
pub(crate) use cx::{ThreadTools, ToolCx};
pub(crate) use mcp::McpTools;
pub(crate) use scope::Role;
pub(crate) use source::ToolSource;
pub(crate) use toolbox::Toolbox;

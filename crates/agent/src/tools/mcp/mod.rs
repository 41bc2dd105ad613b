//! The tools of a thread's MCP servers, and those that read resources of servers.

mod approval;
mod item;
mod output;
mod resources;
mod tool;

use std::sync::Arc;

use loomd_mcp::{Listing, model_names};
use parking_lot::Mutex;

use super::source::{ToolList, ToolSource};
use super::tool::Tool;
use crate::mcp::{ThreadServer, ThreadServers, Visibility};
use resources::{ListResources, ReadResource};
use tool::McpTool;

/// The tools of the servers that have started.
pub(crate) struct McpTools {
    servers: Arc<ThreadServers>,
    /// The list that was made last, with what it was made of.
    made: Mutex<Option<Made>>,
}

struct Made {
    /// Whether there were any servers, started or not.
    any: bool,
    of: Vec<(Arc<ThreadServer>, Arc<Listing>)>,
    tools: ToolList,
}

impl McpTools {
    pub fn new(servers: Arc<ThreadServers>) -> Self {
        Self { servers, made: Mutex::default() }
    }
}

impl ToolSource for McpTools {
    fn snapshot(&self) -> ToolList {
        let (any, of) = (!self.servers.is_empty(), self.servers.ready());
        let mut made = self.made.lock();
        if let Some(made) = &*made
            && made.any == any
            && same(&made.of, &of)
        {
            return Arc::clone(&made.tools);
        }
        let tools = make(any, &of);
        *made = Some(Made { any, of, tools: Arc::clone(&tools) });
        tools
    }
}

fn same(one: &[(Arc<ThreadServer>, Arc<Listing>)], other: &[(Arc<ThreadServer>, Arc<Listing>)]) -> bool {
    let same = |((a, b), (c, d)): (&(Arc<_>, Arc<_>), &(Arc<_>, Arc<_>))| Arc::ptr_eq(a, c) && Arc::ptr_eq(b, d);
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn make(any: bool, servers: &[(Arc<ThreadServer>, Arc<Listing>)]) -> ToolList {
    let mut raw = Vec::new();
    for (server, listing) in servers {
        for tool in &listing.tools {
            let blocked = match server.rules.visibility(tool) {
                Visibility::Offered => None,
                Visibility::Blocked(reason) => Some(reason),
                Visibility::Hidden => continue,
            };
            raw.push((server.rules.raw_name(&server.name, tool), (server, tool, blocked)));
        }
    }
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for named in model_names(raw) {
        let (server, tool, blocked) = named.tool;
        match tool.parameters() {
            Ok(parameters) => tools.push(Arc::new(McpTool {
                name: named.name,
                parameters,
                server: Arc::clone(server),
                tool: Arc::clone(tool),
                blocked,
            })),
            Err(problem) => {
                tracing::warn!(server = server.name, problem, "a tool is not offered because of its schema");
            }
        }
    }
    if any {
        tools.push(Arc::new(ListResources(loomd_mcp::Resources::Resources)));
        tools.push(Arc::new(ListResources(loomd_mcp::Resources::Templates)));
        tools.push(Arc::new(ReadResource));
    }
    tools.into()
}

//! The tools of a thread's MCP servers, and those that read resources of servers.

mod approval;
mod item;
mod namespace;
mod output;
mod resources;
mod search;
mod suggest;
mod tool;

use std::sync::Arc;

use loomd_apps::{Connector, Mentions, SERVER};
use loomd_mcp::{Listing, model_names};
use parking_lot::Mutex;

use super::source::{ToolList, ToolSource};
use super::tool::Tool;
use crate::mcp::{ThreadServer, ThreadServers};
use namespace::namespaces;
use resources::{ListResources, ReadResource};
use search::ToolSearch;
use suggest::ToolSuggest;
use tool::{AppTool, McpTool, Namespaced};

/// From this many tools of apps on, they are searched for instead of offered, where the model can do that.
const SEARCHED: usize = 100;

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
    mentions: Arc<Mentions>,
    tools: ToolList,
}

impl McpTools {
    pub fn new(servers: Arc<ThreadServers>) -> Self {
        Self { servers, made: Mutex::default() }
    }
}

impl McpTools {
    /// Suggests apps, when the thread has the server of the apps and its tools are known.
    fn suggest(&self, servers: &[(Arc<ThreadServer>, Arc<Listing>)]) -> Option<ToolSuggest> {
        let (_, listing) = servers.iter().find(|(server, _)| server.name == SERVER)?;
        let accessible = listing.tools.iter().filter_map(|tool| Connector::of(tool)).map(|connector| connector.id);
        Some(ToolSuggest { services: Arc::clone(self.servers.services()?), accessible: accessible.collect() })
    }
}

impl ToolSource for McpTools {
    fn is_mcp(&self) -> bool {
        true
    }

    fn snapshot(&self) -> ToolList {
        let (any, of) = (!self.servers.is_empty(), self.servers.ready());
        let mentions = self.servers.mentions();
        let mut made = self.made.lock();
        if let Some(made) = &*made
            && made.any == any
            && same(&made.of, &of)
            && Arc::ptr_eq(&made.mentions, &mentions)
        {
            return Arc::clone(&made.tools);
        }
        let tools = make(any, &of, &mentions, self.suggest(&of));
        *made = Some(Made { any, of, mentions, tools: Arc::clone(&tools) });
        tools
    }
}

fn same(one: &[(Arc<ThreadServer>, Arc<Listing>)], other: &[(Arc<ThreadServer>, Arc<Listing>)]) -> bool {
    let same = |((a, b), (c, d)): (&(Arc<_>, Arc<_>), &(Arc<_>, Arc<_>))| Arc::ptr_eq(a, c) && Arc::ptr_eq(b, d);
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn make(
    any: bool,
    servers: &[(Arc<ThreadServer>, Arc<Listing>)],
    mentions: &Mentions,
    suggest: Option<ToolSuggest>,
) -> ToolList {
    let mut raw = Vec::new();
    for (server, listing) in servers {
        for tool in listing.tools.iter().filter(|tool| server.rules.offers(tool)) {
            raw.push((server.rules.raw_name(&server.name, tool), (server, tool)));
        }
    }
    let of_apps = raw.iter().filter(|(_, (server, tool))| server.rules.app(tool).is_some()).count();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let (mut searched, mut flat) = (Vec::new(), Vec::new());
    for named in model_names(raw) {
        let (server, tool) = named.tool;
        match tool.parameters() {
            Ok(parameters) => {
                let app = server.rules.app(tool).map(|(connector, names)| AppTool {
                    searched: of_apps >= SEARCHED,
                    mentioned: mentions.names(&connector.id, &connector.name),
                    connector,
                    names,
                });
                let tool = Arc::new(McpTool {
                    name: named.name,
                    parameters,
                    server: Arc::clone(server),
                    tool: Arc::clone(tool),
                    app,
                });
                if tool.is_searched() {
                    searched.push(Arc::clone(&tool));
                    tools.push(Arc::new(Namespaced(Arc::clone(&tool))));
                }
                flat.push(Arc::clone(&tool));
                tools.push(tool);
            }
            Err(problem) => {
                tracing::warn!(server = server.name, problem, "a tool is not offered because of its schema");
            }
        }
    }
    tools.extend(namespaces(&flat));
    if !searched.is_empty() {
        tools.push(Arc::new(ToolSearch::new(searched)));
    }
    if let Some(suggest) = suggest {
        tools.push(Arc::new(suggest));
    }
    if any {
        tools.push(Arc::new(ListResources(loomd_mcp::Resources::Resources)));
        tools.push(Arc::new(ListResources(loomd_mcp::Resources::Templates)));
        tools.push(Arc::new(ReadResource));
    }
    tools.into()
}

//! The tools of a server as one namespace: how newer clients' threads offer and call them.

use std::sync::Arc;

use loomd_mcp::sanitised;
use loomd_model::ToolSpec;
use serde_json::json;

use super::tool::McpTool;
use crate::tool_call::{Call, ToolResult};
use crate::tools::cx::ToolCx;
use crate::tools::scope::ToolScope;
use crate::tools::tool::{Tool, ToolFuture, ToolName};

/// The spec of a server's namespace. It is offered, not called.
pub(super) struct ServerNamespace {
    name: String,
    description: String,
    /// With their names in the namespace, in the order of these.
    tools: Vec<(String, Arc<McpTool>)>,
}

/// A tool by its name in a namespace. It is called, not offered.
pub(super) struct InNamespace {
    namespace: String,
    name: String,
    tool: Arc<McpTool>,
}

/// Groups tools by their servers.
pub(super) fn namespaces(tools: &[Arc<McpTool>]) -> Vec<Arc<dyn Tool>> {
    let mut groups: Vec<ServerNamespace> = Vec::new();
    let mut callable: Vec<Arc<dyn Tool>> = Vec::new();
    for tool in tools.iter().filter(|tool| tool.app.is_none()) {
        let namespace = format!("mcp__{}", sanitised(&tool.server.name));
        // The flat name is unique, and so is what is left of it.
        let name = tool.name.strip_prefix(&format!("{namespace}__")).unwrap_or(&tool.name).to_owned();
        let named = InNamespace { namespace: namespace.clone(), name: name.clone(), tool: Arc::clone(tool) };
        callable.push(Arc::new(named));
        match groups.iter_mut().find(|group| group.name == namespace) {
            Some(group) => group.tools.push((name, Arc::clone(tool))),
            None => groups.push(ServerNamespace {
                description: format!("Tools of the MCP server `{}`.", tool.server.name),
                name: namespace,
                tools: vec![(name, Arc::clone(tool))],
            }),
        }
    }
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    let offered = groups.into_iter().map(|mut group| {
        group.tools.sort_by(|(a, _), (b, _)| a.cmp(b));
        Arc::new(group) as Arc<dyn Tool>
    });
    offered.chain(callable).collect()
}

impl Tool for ServerNamespace {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain(&self.name)
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let tools: Vec<_> = self
            .tools
            .iter()
            .filter(|(_, tool)| tool.is_grouped(scope))
            .map(|(name, tool)| {
                json!({
                    "type": "function",
                    "name": name,
                    "description": tool.server.rules.description(&tool.tool),
                    "strict": false,
                    "parameters": tool.parameters,
                })
            })
            .collect();
        (!tools.is_empty()).then(|| {
            ToolSpec::Other(json!({
                "type": "namespace", "name": self.name, "description": self.description, "tools": tools,
            }))
        })
    }

    fn callable(&self, _: &ToolScope<'_>) -> bool {
        false
    }

    fn run<'a>(&'a self, _: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async move { ToolResult::Err(format!("unsupported call: {}", call.name)) })
    }
}

impl Tool for InNamespace {
    fn name(&self) -> ToolName<'_> {
        ToolName { namespace: Some(&self.namespace), name: &self.name }
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        None
    }

    fn parallel(&self) -> bool {
        self.tool.parallel()
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        self.tool.is_grouped(scope)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        self.tool.run(cx, call)
    }
}

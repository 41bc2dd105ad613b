//! What a thread makes of the tools of a server: their names, which of them are offered, which need an approval.

use std::sync::Arc;

use loomd_apps::{Connector, ToolNames};
use loomd_config::config_toml::McpServer;
use loomd_mcp::{Origin, SetEntry, Tool};
use loomd_protocol::{AppToolApproval, JsonObject};

/// How an approval of a tool call is worded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApprovalSubject {
    /// What would run the tool: `the srv MCP server`.
    pub name: String,
    /// Further members of the request's `_meta`.
    pub meta: JsonObject,
}

/// The rules of one server's tools.
pub(crate) trait ToolRules: Send + Sync {
    /// Whether a tool can be called. Others are as if they did not exist.
    fn offers(&self, tool: &Tool) -> bool;

    /// The name from which the model's is made.
    fn raw_name(&self, server: &str, tool: &Tool) -> String {
        format!("mcp__{server}__{}", tool.name)
    }

    fn description(&self, tool: &Tool) -> String {
        tool.description.clone().unwrap_or_default()
    }

    fn approval_mode(&self, tool: &Tool) -> AppToolApproval;

    /// `others` are all tools of the server.
    fn approval_subject(&self, server: &str, _tool: &Tool, _others: &[Arc<Tool>]) -> ApprovalSubject {
        ApprovalSubject { name: format!("the {server} MCP server"), meta: JsonObject::new() }
    }

    /// The app that a tool belongs to, and its names; `None` for tools of other servers.
    fn app(&self, _tool: &Tool) -> Option<(Connector, ToolNames)> {
        None
    }

    /// The configuration key that an approval for ever is written to.
    fn approval_key(&self, server: &str, tool: &Tool) -> Vec<String> {
        ["mcp_servers", server, "tools", &tool.name, "approval_mode"].map(str::to_owned).into()
    }
}

/// The rules of a configured server, or of one of a plugin.
pub(crate) struct ConfiguredRules {
    config: McpServer,
    /// The plugin that it is part of.
    plugin: Option<String>,
}

impl ConfiguredRules {
    pub fn new(entry: &SetEntry) -> Self {
        let plugin = match &entry.origin {
            Origin::Plugin { display_name, .. } => Some(display_name.clone()),
            Origin::Configuration | Origin::Apps(_) => None,
        };
        Self { config: entry.config.clone(), plugin }
    }
}

impl ToolRules for ConfiguredRules {
    fn offers(&self, tool: &Tool) -> bool {
        let listed = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.contains(&tool.name));
        listed(&self.config.enabled_tools) != Some(false) && listed(&self.config.disabled_tools) != Some(true)
    }

    fn description(&self, tool: &Tool) -> String {
        let description = tool.description.clone().unwrap_or_default();
        match &self.plugin {
            None => description,
            Some(plugin) => {
                let trimmed = description.trim_end();
                let stop = if trimmed.is_empty() || trimmed.ends_with('.') { "" } else { "." };
                let text = format!("{trimmed}{stop} This tool is part of plugin `{plugin}`.");
                text.trim_start().to_owned()
            }
        }
    }

    fn approval_mode(&self, tool: &Tool) -> AppToolApproval {
        let mode = self.config.tools.get(&tool.name).and_then(|tool| tool.approval_mode);
        mode.unwrap_or(AppToolApproval::Auto)
    }
}

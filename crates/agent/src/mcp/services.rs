//! What the MCP servers of all threads share.

use std::sync::Arc;

use loomd_config::ConfigSources;
use loomd_mcp::{ServerSet, Servers, SetEntry};
use loomd_plugins::ActivePlugin;

use super::rules::{ConfiguredRules, ToolRules};

/// The connections of all threads, and where approvals that hold for ever are written.
pub struct McpServices {
    pub servers: Servers,
    pub sources: Arc<ConfigSources>,
}

impl McpServices {
    /// The rules of a server's tools.
    pub(crate) fn rules(&self, entry: &SetEntry) -> Arc<dyn ToolRules> {
        Arc::new(ConfiguredRules::new(entry))
    }
}

/// The servers of a configuration and of plugins that the administrator allows.
pub(crate) fn allowed_servers(config: &loomd_config::Settings, plugins: &[ActivePlugin]) -> ServerSet {
    let mut set = ServerSet::new(&config.config.mcp_servers);
    for plugin in plugins {
        set.add_plugin(&plugin.display_name, &plugin.mcp_servers);
    }
    set.retain(|name, entry| config.requirements.allows_mcp_server(name, &entry.config));
    set
}

//! What the MCP servers of all threads share.

use std::sync::Arc;

use loomd_apps::{Account, AppsAccount, SERVER, ToolsCache, server_entry};
use loomd_config::{ConfigSources, Feature};
use loomd_mcp::{Listing, Origin, ServerSet, Servers, SetEntry};
use loomd_plugins::ActivePlugin;

use super::app_rules::AppToolRules;
use super::rules::{ConfiguredRules, ToolRules};
use super::startup::keep;

/// The connections of all threads, and where approvals that hold for ever are written.
pub struct McpServices {
    pub servers: Servers,
    pub sources: Arc<ConfigSources>,
    /// The account whose apps threads have.
    pub apps: Option<Arc<dyn AppsAccount>>,
}

impl McpServices {
    /// The rules of a server's tools.
    pub(crate) fn rules(&self, entry: &SetEntry) -> Arc<dyn ToolRules> {
        match &entry.origin {
            Origin::Apps(config) => Arc::new(AppToolRules::new(config.clone())),
            Origin::Configuration | Origin::Plugin { .. } => Arc::new(ConfiguredRules::new(entry)),
        }
    }

    /// Where the tools of a server are kept for the time until it has started: only those of apps.
    pub(crate) fn tools_cache(&self, entry: &SetEntry) -> Option<ToolsCache> {
        match entry.origin {
            Origin::Apps(_) => Some(ToolsCache::new(&self.sources.home, &self.apps.as_ref()?.account()?)),
            Origin::Configuration | Origin::Plugin { .. } => None,
        }
    }

    /// Writes the tools of a server to its cache, if it has one, beside other work.
    pub(crate) fn keep_tools(&self, entry: &SetEntry, listing: &Arc<Listing>) {
        if let Some(cache) = self.tools_cache(entry) {
            keep(Arc::new(cache), Arc::clone(listing));
        }
    }

    /// The account whose apps a configuration allows; `None` when apps are off or no ChatGPT account is signed in.
    pub(crate) fn apps_account(&self, config: &loomd_config::Settings) -> Option<Account> {
        self.apps.as_ref().filter(|_| config.features.enabled(Feature::Apps))?.account()
    }
}

/// The implicit server of the apps.
pub(crate) fn apps_entry(config: &loomd_config::Settings, account: &Account) -> SetEntry {
    server_entry(&config.config, account, &|name| std::env::var(name).ok())
}

/// The servers of a configuration and of plugins that the administrator allows, and that of the account's apps.
pub(crate) fn allowed_servers(
    config: &loomd_config::Settings,
    plugins: &[ActivePlugin],
    services: Option<&McpServices>,
) -> ServerSet {
    let mut set = ServerSet::new(&config.config.mcp_servers);
    for plugin in plugins {
        set.add_plugin(&plugin.id.to_string(), &plugin.display_name, &plugin.mcp_servers);
    }
    set.retain(|name, entry| config.requirements.allows_mcp_server(name, &entry.config));
    if let Some(account) = services.and_then(|services| services.apps_account(config)) {
        set.insert(SERVER, apps_entry(config, &account));
    }
    set
}

//! What `app/list` needs of the agent: whose apps, by whose settings, and their tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_apps::{Account, AppRules, AppSettings, AppTools, BoxFuture};
use loomd_mcp::{Server, SetEntry, Tool};
use loomd_plugins::ActivePlugin;
use loomd_store::ThreadId;

use crate::agent::Agent;
use crate::mcp::{McpServices, apps_entry};
use crate::refusal::Refusal;

/// The apps of the signed-in account, as one configuration sees them.
pub struct AccountApps {
    pub account: Account,
    pub settings: AppSettings,
    pub tools: Arc<dyn AppTools>,
}

/// The tools of the implicit server.
struct ServerTools {
    server: Arc<Server>,
    entry: SetEntry,
    services: Arc<McpServices>,
}

impl AppTools for ServerTools {
    fn tools(&self, refetch: bool) -> BoxFuture<'_, Result<Vec<Arc<Tool>>, String>> {
        Box::pin(async move {
            let listing = match refetch {
                true => self.server.relist().await.map_err(|error| error.to_string())?,
                false => self.server.start().await.map_err(|error| error.to_string())?,
            };
            self.services.keep_tools(&self.entry, &listing);
            Ok(listing.tools.clone())
        })
    }
}

impl Agent {
    /// The apps by the configuration of a loaded thread, else by the user's. `None` when apps are off or no ChatGPT
    /// account is signed in.
    pub fn apps(&self, thread: Option<ThreadId>) -> Result<Option<AccountApps>, Refusal> {
        let Some(services) = self.mcp() else { return Ok(None) };
        match thread {
            Some(id) => {
                let profile = self.threads().profile(id).ok_or_else(|| Refusal::not_found(id))?;
                Ok(apps(services, &profile.config, &profile.extensions.plugins))
            }
            None => {
                let (config, plugins) = self.configured()?;
                Ok(apps(services, &config, &plugins))
            }
        }
    }
}

fn apps(services: &Arc<McpServices>, config: &loomd_config::Settings, plugins: &[ActivePlugin]) -> Option<AccountApps> {
    let account = services.apps_account(config)?;
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for plugin in plugins {
        for id in &plugin.apps {
            names.entry(id.clone()).or_default().push(plugin.display_name.clone());
        }
    }
    let rules = AppRules::new(config.config.apps.clone().unwrap_or_default());
    let entry = apps_entry(config, &account);
    let server = services.servers.get(&entry.reached);
    let tools = Arc::new(ServerTools { server, entry, services: Arc::clone(services) });
    Some(AccountApps { account, settings: AppSettings { rules, plugins: names }, tools })
}

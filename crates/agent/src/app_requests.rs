//! What `app/list` needs of the agent: whose apps, by whose settings, and their tools.

use std::sync::Arc;

use loomd_apps::{Account, AppRules, AppTools, BoxFuture};
use loomd_mcp::{Server, Tool};
use loomd_store::ThreadId;

use crate::agent::Agent;
use crate::mcp::apps_entry;
use crate::refusal::Refusal;

/// The apps of the signed-in account, as one configuration sees them.
pub struct AccountApps {
    pub account: Account,
    pub rules: AppRules,
    pub tools: Arc<dyn AppTools>,
}

/// The tools of the implicit server.
struct ServerTools(Arc<Server>);

impl AppTools for ServerTools {
    fn tools(&self, refetch: bool) -> BoxFuture<'_, Result<Vec<Arc<Tool>>, String>> {
        Box::pin(async move {
            let listing = match refetch {
                true => self.0.relist().await.map_err(|error| error.to_string())?,
                false => self.0.start().await.map_err(|error| error.to_string())?,
            };
            Ok(listing.tools.clone())
        })
    }
}

impl Agent {
    /// The apps by the configuration of a loaded thread, else by the user's. `None` when apps are off or no ChatGPT
    /// account is signed in.
    pub fn apps(&self, thread: Option<ThreadId>) -> Result<Option<AccountApps>, Refusal> {
        let Some(services) = self.mcp() else { return Ok(None) };
        let loaded;
        let profile;
        let config = match thread {
            Some(id) => {
                profile = self.threads().profile(id).ok_or_else(|| Refusal::not_found(id))?;
                &profile.config
            }
            None => {
                loaded = self.configured()?;
                &loaded
            }
        };
        let Some(account) = services.apps_account(config) else { return Ok(None) };
        let rules = AppRules::new(config.config.apps.clone().unwrap_or_default());
        let server = services.servers.get(&apps_entry(config, &account).reached);
        Ok(Some(AccountApps { account, rules, tools: Arc::new(ServerTools(server)) }))
    }
}

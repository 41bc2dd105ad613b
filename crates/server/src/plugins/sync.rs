//! Brings the installed plugins of the curated marketplace in line with the user's account.

use std::collections::BTreeMap;

use loomd_accounts::Accounts;
use loomd_config::ConfigSources;
use loomd_plugins::{CURATED, Marketplace, PluginCache, PluginId, PluginStates, curated_folder};
use loomd_protocol::AbsolutePathBuf;
use tokio::task::spawn_blocking;

use super::remote::{self, RemoteError, RemotePlugin};
use super::{Plugins, install, installable, set_enabled};

impl Plugins {
    /// Installs and enables the plugins that are enabled in the account, and uninstalls the others of the curated
    /// marketplace. Nothing is changed unless the answer of the account is understood as a whole.
    pub async fn sync(&self, sources: &std::sync::Arc<ConfigSources>, accounts: &Accounts) -> Result<(), RemoteError> {
        let remote = remote::list(accounts).await?;
        let _change = self.change().await;
        let sources = std::sync::Arc::clone(sources);
        let applied = spawn_blocking(move || apply(&sources, remote)).await;
        applied.unwrap_or_else(|error| Err(error.to_string())).map_err(RemoteError::Other)
    }
}

fn apply(sources: &ConfigSources, remote: Vec<RemotePlugin>) -> Result<(), String> {
    let home = &sources.home;
    let file = AbsolutePathBuf::new(Marketplace::file_of(&curated_folder(home)));
    let marketplace = file.and_then(|file| Marketplace::load(&file).ok()).filter(|found| found.name == CURATED);
    let marketplace = marketplace.ok_or("local curated marketplace is not available")?;
    let wanted = wanted(remote)?;
    let loaded = loomd_config::load(&sources.request()).map_err(|error| error.to_string())?;
    let (states, cache) = (PluginStates::of(&loaded.stack), PluginCache::new(home));
    let (mut added, mut removed, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for plugin in &marketplace.plugins {
        let Ok(id) = PluginId::new(&plugin.name, CURATED) else { continue };
        let (is_installed, is_enabled) = states.state(&id, &cache);
        if wanted.get(&plugin.name) == Some(&true) {
            if !is_installed {
                let installed = installable(home, &marketplace, &plugin.name).and_then(|found| install(home, &found));
                if let Err(error) = installed {
                    problems.push(error.to_string());
                    continue;
                }
            }
            if !is_enabled {
                added.push(id);
            }
        } else if is_installed || states.of_marketplace(CURATED).any(|known| *known == id) {
            removed.push(id);
        }
    }
    if !added.is_empty() || !removed.is_empty() {
        set_enabled(sources, &added, &removed).map_err(|error| format!("failed to update plugin settings: {error}"))?;
    }
    for id in &removed {
        problems.extend(cache.remove(id).err().map(|error| error.to_string()));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// The plugins of the account, and whether they are enabled.
fn wanted(remote: Vec<RemotePlugin>) -> Result<BTreeMap<String, bool>, String> {
    let mut wanted = BTreeMap::new();
    for RemotePlugin { name, marketplace_name, enabled } in remote {
        if let Some(other) = marketplace_name.filter(|marketplace| marketplace != CURATED) {
            return Err(format!("remote marketplace `{other}` is not available locally"));
        }
        if wanted.insert(name.clone(), enabled).is_some() {
            return Err(format!("duplicate remote plugin `{name}` in sync response"));
        }
    }
    Ok(wanted)
}

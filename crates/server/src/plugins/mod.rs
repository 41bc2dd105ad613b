//! Installing plugins, and what the user's account says about them. `remote.rs` asks the account, `sync.rs` does what
//! it answers, `curated.rs` keeps the curated marketplace in the home up to date, `marketplaces.rs` those that the user
//! added.

mod curated;
mod git;
mod marketplaces;
mod remote;
mod sync;

use std::time::Instant;

use loomd_accounts::Accounts;
use loomd_config::{ConfigSources, Edit, Feature, LoadedConfig, WriteError, WriteRequest};
use loomd_plugins::{CURATED, Contents, Marketplace, PluginCache, PluginError, PluginId};
use loomd_protocol::{AbsolutePathBuf, AuthMode, JsonValue, MergeStrategy, PluginAuthPolicy, PluginInstallPolicy};
use parking_lot::Mutex;

pub(crate) use curated::start as start_curated_sync;
pub(crate) use marketplaces::{MarketplaceError, Source, add, added_roots, remove, upgrade};

/// The plugins of the server.
#[derive(Default)]
pub(crate) struct Plugins {
    /// Held while plugins are installed or removed.
    changes: tokio::sync::Mutex<()>,
    featured: Mutex<Option<(Instant, Vec<String>)>>,
}

impl Plugins {
    /// The right to install or remove plugins.
    pub async fn change(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changes.lock().await
    }
}

/// A plugin that can be installed.
#[derive(Clone, Debug)]
pub(crate) struct Installable {
    pub id: PluginId,
    pub source: AbsolutePathBuf,
    pub version: String,
    pub auth_policy: PluginAuthPolicy,
    pub apps: Vec<String>,
    pub has_servers: bool,
}

/// Finds a plugin of a marketplace that may be installed.
pub(crate) fn find(
    home: &AbsolutePathBuf,
    marketplace: &AbsolutePathBuf,
    name: &str,
) -> Result<Installable, PluginError> {
    installable(home, &Marketplace::load(marketplace)?, name)
}

fn installable(home: &AbsolutePathBuf, marketplace: &Marketplace, name: &str) -> Result<Installable, PluginError> {
    let plugin = marketplace.find(name)?;
    if !plugin.for_us || plugin.install_policy == PluginInstallPolicy::NotAvailable {
        return Err(PluginError::NotAvailable { plugin: name.into(), marketplace: marketplace.name.clone() });
    }
    let source = marketplace.source(plugin)?.clone();
    let id = PluginId::new(&plugin.name, &marketplace.name)?;
    let curated = (marketplace.name == CURATED).then(|| loomd_plugins::curated_version(home)).flatten();
    // What is wrong with the source is said when it is installed.
    let contents = loomd_plugins::check_source(&source).map(|manifest| Contents::read(&source, &manifest));
    let Contents { apps, mcp_servers, .. } = contents.unwrap_or_default();
    Ok(Installable {
        id,
        version: curated.unwrap_or_else(|| "local".into()),
        auth_policy: plugin.auth_policy,
        apps,
        has_servers: !mcp_servers.is_empty(),
        source,
    })
}

pub(crate) fn install(home: &AbsolutePathBuf, plugin: &Installable) -> Result<(), PluginError> {
    PluginCache::new(home).install(&plugin.source, &plugin.id, &plugin.version)
}

/// Adds plugins to the user's configuration as enabled, and removes others from it.
pub(crate) fn set_enabled(sources: &ConfigSources, added: &[PluginId], removed: &[PluginId]) -> Result<(), WriteError> {
    let edit = |key_path: String, value: JsonValue| Edit { key_path, value, merge_strategy: MergeStrategy::Replace };
    let mut edits: Vec<Edit> = added.iter().map(|id| edit(format!("plugins.\"{id}\".enabled"), true.into())).collect();
    edits.extend(removed.iter().map(|id| edit(format!("plugins.\"{id}\""), JsonValue::Null)));
    let write = WriteRequest { edits: &edits, file_path: None, expected_version: None, cwd: &sources.home };
    match loomd_config::write(&sources.request(), &write) {
        // There are no plugins in the file.
        Err(WriteError::PathNotFound) if added.is_empty() => Ok(()),
        written => written.map(|_| ()),
    }
}

/// Whether the feature is enabled.
pub(crate) fn is_on(loaded: &LoadedConfig) -> bool {
    loaded.features().is_ok_and(|features| features.enabled(Feature::Plugins))
}

/// Whether apps can be used: with the feature and a ChatGPT account.
pub(crate) fn has_apps(loaded: &LoadedConfig, accounts: &Accounts) -> bool {
    loaded.features().is_ok_and(|features| features.enabled(Feature::Apps)) && is_chatgpt(accounts)
}

fn is_chatgpt(accounts: &Accounts) -> bool {
    accounts.auth_mode().is_some_and(|mode| mode != AuthMode::Apikey)
}

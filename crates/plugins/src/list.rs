//! `plugin/list`: the marketplaces of the user and of working directories.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use loomd_git::Repository;
use loomd_protocol::{
    AbsolutePathBuf, MarketplaceLoadErrorInfo, PluginAvailability, PluginMarketplaceEntry, PluginSource, PluginSummary,
};

use crate::cache::PluginCache;
use crate::error::PluginError;
use crate::id::PluginId;
use crate::manifest::{Manifest, empty_interface};
use crate::marketplace::{Marketplace, MarketplacePlugin, curated_folder};
use crate::settings::PluginStates;

/// Where marketplaces are looked for.
#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a> {
    pub home: &'a AbsolutePathBuf,
    /// `$HOME`
    pub user_home: Option<&'a Path>,
    pub cwds: &'a [AbsolutePathBuf],
    pub states: &'a PluginStates,
    /// The roots of marketplaces that the user added.
    pub added: &'a [PathBuf],
    /// Whether plugins whose folder cannot be used are left out. Else they make their marketplace invalid.
    pub lenient: bool,
}

/// Lists the plugins of all marketplaces, and the marketplaces that cannot be read.
pub fn list(request: &ListRequest<'_>) -> (Vec<PluginMarketplaceEntry>, Vec<MarketplaceLoadErrorInfo>) {
    let cache = PluginCache::new(request.home);
    let (mut marketplaces, mut errors) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for file in files(request) {
        match Marketplace::load(&file).and_then(|marketplace| entry(&marketplace, request, &cache, &mut seen)) {
            Ok(entry) if entry.plugins.is_empty() => {}
            Ok(entry) => marketplaces.push(entry),
            // It was removed meanwhile.
            Err(PluginError::NoMarketplace(_)) => {}
            Err(error) => {
                errors.push(MarketplaceLoadErrorInfo { marketplace_path: file, message: error.to_string() });
            }
        }
    }
    (marketplaces, errors)
}

/// The files of marketplaces that exist: the user's, then the others by path, each once.
fn files(request: &ListRequest<'_>) -> Vec<AbsolutePathBuf> {
    let mut others: Vec<PathBuf> = request.cwds.iter().filter_map(root_of).collect();
    others.push(curated_folder(request.home));
    others.extend(request.added.iter().cloned());
    others.sort();
    let mut files: Vec<AbsolutePathBuf> = Vec::new();
    for root in request.user_home.map(Path::to_path_buf).into_iter().chain(others) {
        let file = Marketplace::existing_file(&root).and_then(AbsolutePathBuf::new);
        if let Some(file) = file.filter(|file| !files.contains(file)) {
            files.push(file);
        }
    }
    files
}

/// The root of a working directory's marketplace: the directory itself, else the root of its repository.
fn root_of(cwd: &AbsolutePathBuf) -> Option<PathBuf> {
    if Marketplace::existing_file(cwd).is_some() {
        return Some(cwd.to_path_buf());
    }
    let is_repository = |folder: &&Path| Repository::at(folder).is_some();
    cwd.ancestors().find(is_repository).map(Path::to_path_buf)
}

fn entry(
    marketplace: &Marketplace,
    request: &ListRequest<'_>,
    cache: &PluginCache,
    seen: &mut HashSet<String>,
) -> Result<PluginMarketplaceEntry, PluginError> {
    let mut plugins = Vec::new();
    for plugin in marketplace.plugins.iter().filter(|plugin| plugin.for_us) {
        if request.lenient && plugin.source.is_err() {
            continue;
        }
        let summary = summary(marketplace, plugin, request.states, cache)?;
        if seen.insert(summary.id.clone()) {
            plugins.push(summary);
        }
    }
    Ok(PluginMarketplaceEntry {
        name: marketplace.name.clone(),
        path: marketplace.path.clone(),
        interface: marketplace.interface.clone(),
        plugins,
    })
}

/// A plugin as clients see it. Its folder need not exist.
pub(crate) fn summary(
    marketplace: &Marketplace,
    plugin: &MarketplacePlugin,
    states: &PluginStates,
    cache: &PluginCache,
) -> Result<PluginSummary, PluginError> {
    let folder = marketplace.source(plugin)?.clone();
    let manifest = Manifest::read(&folder);
    let (local_version, keywords) =
        manifest.as_ref().map(|manifest| (manifest.version.clone(), manifest.keywords.clone())).unwrap_or_default();
    let mut interface = manifest.and_then(|manifest| manifest.interface);
    if let Some(category) = &plugin.category {
        interface.get_or_insert_with(empty_interface).category = Some(category.clone());
    }
    // A name that is no valid id can be listed, not installed.
    let id = PluginId::new(&plugin.name, &marketplace.name).ok();
    let (installed, enabled) = id.map_or((false, false), |id| states.state(&id, cache));
    Ok(PluginSummary {
        id: format!("{}@{}", plugin.name, marketplace.name),
        name: plugin.name.clone(),
        source: PluginSource::Local { path: folder },
        installed,
        enabled,
        install_policy: plugin.install_policy,
        auth_policy: plugin.auth_policy,
        interface,
        local_version,
        keywords,
        availability: PluginAvailability::Available,
        version: None,
        remote_plugin_id: None,
        installed_at: None,
        disabled_reason: None,
        eligible_plan_types: None,
        must_show_installation_interstitial: None,
    })
}

//! `[plugins."<plugin>@<marketplace>"]`: which plugins the user has, and which of them are enabled.

use std::collections::BTreeMap;

use loomd_config::LayerStack;
use loomd_config::config_toml::PluginSettings;
use loomd_protocol::ConfigLayerSource;

use crate::cache::PluginCache;
use crate::id::PluginId;

/// The plugins of the user's configuration, and whether they are enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginStates(BTreeMap<PluginId, bool>);

impl PluginStates {
    /// Reads the user's file and flags. Projects do not count: a repository cannot enable what it brings.
    pub fn of(stack: &LayerStack) -> Self {
        let mut states = BTreeMap::new();
        for layer in stack.enabled() {
            let is_users = matches!(layer.source, ConfigLayerSource::User { .. } | ConfigLayerSource::SessionFlags);
            let Some(plugins) = layer.table.get("plugins").and_then(|plugins| plugins.as_table()) else { continue };
            for (key, value) in plugins.iter().filter(|_| is_users) {
                let settings: PluginSettings = value.clone().try_into().unwrap_or_default();
                if let Ok(id) = key.parse::<PluginId>() {
                    states.insert(id, settings.enabled);
                }
            }
        }
        Self(states)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The enabled plugins.
    pub fn enabled(&self) -> impl Iterator<Item = &PluginId> {
        self.0.iter().filter(|(_, enabled)| **enabled).map(|(id, _)| id)
    }

    /// All plugins of a marketplace.
    pub fn of_marketplace(&self, marketplace: &str) -> impl Iterator<Item = &PluginId> {
        self.0.keys().filter(move |id| id.marketplace() == marketplace)
    }

    /// Whether a plugin is installed, and whether it is enabled.
    pub fn state(&self, id: &PluginId, cache: &PluginCache) -> (bool, bool) {
        match self.0.get(id) {
            Some(enabled) => (cache.active(id).is_some(), *enabled),
            None => (false, false),
        }
    }
}

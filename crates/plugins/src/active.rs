//! The plugins that threads get: installed and enabled.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use loomd_config::LayerStack;
use loomd_config::config_toml::McpServer;
use loomd_protocol::{AbsolutePathBuf, UserInput};
use loomd_skills::Mentions;

use crate::cache::PluginCache;
use crate::contents::Contents;
use crate::id::PluginId;
use crate::manifest::Manifest;
use crate::settings::PluginStates;

/// A plugin that is installed and enabled.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivePlugin {
    pub id: PluginId,
    /// The prefix of its skills.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    pub description: Option<String>,
    pub skill_folders: Vec<PathBuf>,
    pub mcp_servers: BTreeMap<String, McpServer>,
    pub apps: Vec<String>,
}

/// Returns the active plugins by id. One without a valid manifest is left out.
pub fn active(home: &AbsolutePathBuf, stack: &LayerStack) -> Vec<ActivePlugin> {
    let cache = PluginCache::new(home);
    let plugin = |id: &PluginId| {
        let folder = cache.active(id)?;
        let Some(manifest) = Manifest::read(&folder) else {
            tracing::warn!(plugin = %id, folder = %folder.display(), "invalid manifest of an installed plugin");
            return None;
        };
        let Contents { skill_folders, mcp_servers, apps } = Contents::read(&folder, &manifest);
        let shown = manifest.interface.as_ref().and_then(|interface| interface.short_description.clone());
        Some(ActivePlugin {
            id: id.clone(),
            display_name: manifest.display_name().into(),
            description: manifest.description.or(shown).map(|text| one_line(&text)).filter(|text| !text.is_empty()),
            // That of the folder, if the manifest has none, is its version here.
            name: loomd_skills::plugin_name(&folder).unwrap_or(manifest.name),
            skill_folders,
            mcp_servers,
            apps,
        })
    };
    PluginStates::of(stack).enabled().filter_map(plugin).collect()
}

/// Returns the plugins that an input mentions: as an input of type `mention`, or as `[@name](plugin://<id>)`.
pub fn mentioned<'a>(plugins: &'a [ActivePlugin], input: &[UserInput]) -> Vec<&'a ActivePlugin> {
    let mut targets = HashSet::new();
    for part in input {
        match part {
            UserInput::Mention { path, .. } => _ = targets.insert(path.clone()),
            UserInput::Text { text, .. } => targets.extend(Mentions::of(text, '@').links),
            _ => {}
        }
    }
    let is_meant = |plugin: &&ActivePlugin| targets.contains(&format!("plugin://{}", plugin.id));
    if targets.is_empty() { Vec::new() } else { plugins.iter().filter(is_meant).collect() }
}

fn one_line(text: &str) -> String {
    /// Of a description that models are told.
    const MAX_CHARS: usize = 1024;
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_CHARS).collect()
}

//! `plugin/read`: one plugin, as it is in the folder of its marketplace.

use loomd_protocol::{AbsolutePathBuf, PluginDetail, SkillScope};
use loomd_skills::{SkillRoot, SkillRules};

use crate::cache::PluginCache;
use crate::contents::{Contents, app_summary};
use crate::error::PluginError;
use crate::list::summary;
use crate::manifest::Manifest;
use crate::marketplace::Marketplace;
use crate::settings::PluginStates;

/// Reads a plugin of a marketplace.
pub fn read(
    home: &AbsolutePathBuf,
    marketplace: &AbsolutePathBuf,
    plugin: &str,
    states: &PluginStates,
    rules: &SkillRules,
) -> Result<PluginDetail, PluginError> {
    let marketplace = Marketplace::load(marketplace)?;
    let not_found = || PluginError::NotFound { plugin: plugin.into(), marketplace: marketplace.name.clone() };
    let plugin = marketplace.find(plugin)?;
    if !plugin.for_us {
        return Err(not_found());
    }
    let folder = marketplace.source(plugin)?;
    let manifest = check_source(folder)?;
    let contents = Contents::read(folder, &manifest);
    let root = |folder| SkillRoot { folder, scope: SkillScope::User, plugin_id: None };
    let roots: Vec<_> = contents.skill_folders.iter().cloned().map(root).collect();
    let skills = loomd_skills::find(&roots, rules).skills;
    Ok(PluginDetail {
        marketplace_name: marketplace.name.clone(),
        marketplace_path: marketplace.path.clone(),
        summary: summary(&marketplace, plugin, states, &PluginCache::new(home))?,
        description: manifest.description,
        skills: skills.iter().map(|skill| skill.to_summary()).collect(),
        apps: contents.apps.iter().map(|id| app_summary(id)).collect(),
        mcp_servers: contents.mcp_servers.into_keys().collect(),
        app_templates: Vec::new(),
        hooks: Vec::new(),
    })
}

/// The manifest of a plugin's folder, or why it has none.
pub fn check_source(folder: &AbsolutePathBuf) -> Result<Manifest, PluginError> {
    if !folder.is_dir() {
        return Err(PluginError::Invalid("path does not exist or is not a directory".into()));
    }
    Manifest::read(folder).ok_or_else(|| PluginError::Invalid("missing or invalid .codex-plugin/plugin.json".into()))
}

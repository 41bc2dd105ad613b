//! Where the skills of a working directory are.

use std::path::{Path, PathBuf};

use loomd_config::LoadedConfig;
use loomd_protocol::{ConfigLayerSource, SkillScope};

use crate::skill::SkillRoot;

/// What determines the roots of a working directory.
#[derive(Clone, Copy, Debug)]
pub struct RootsRequest<'a> {
    /// The configuration of the working directory.
    pub config: &'a LoadedConfig,
    pub home: &'a Path,
    /// `$HOME`
    pub user_home: Option<&'a Path>,
    /// The folder of the system's configuration.
    pub system_folder: Option<&'a Path>,
    /// The skill folders of active plugins, with the ids of the plugins.
    pub plugin_folders: &'a [(PathBuf, String)],
    /// Further folders of the client.
    pub extra: &'a [PathBuf],
}

/// Returns the roots in the order in which they are searched. They need not exist.
pub fn roots(request: &RootsRequest<'_>) -> Vec<SkillRoot> {
    let RootsRequest { config, home, user_home, system_folder, plugin_folders, extra } = *request;
    let mut roots: Vec<SkillRoot> = Vec::new();
    let mut add_of = |folder: PathBuf, scope, plugin_id| {
        if !roots.iter().any(|root| root.folder == folder) {
            roots.push(SkillRoot { folder, scope, plugin_id });
        }
    };
    let mut add = |folder: PathBuf, scope| add_of(folder, scope, None);
    // The layers of projects stand from the root to the working directory.
    for layer in config.stack.layers().iter().rev() {
        if let ConfigLayerSource::Project { dot_codex_folder } = &layer.source {
            add(dot_codex_folder.join("skills"), SkillScope::Repo);
        }
    }
    add(home.join("skills"), SkillScope::User);
    if let Some(user_home) = user_home {
        add(user_home.join(".agents/skills"), SkillScope::User);
    }
    let bundled = config.config.skills.as_ref().and_then(|skills| skills.bundled.as_ref());
    if bundled.is_none_or(|bundled| bundled.enabled) {
        add(home.join("skills/.system"), SkillScope::System);
    }
    if let Some(folder) = system_folder {
        add(folder.join("skills"), SkillScope::Admin);
    }
    for (folder, plugin_id) in plugin_folders {
        add_of(folder.clone(), SkillScope::User, Some(plugin_id.clone()));
    }
    let mut add = |folder: PathBuf, scope| add_of(folder, scope, None);
    for folder in &config.project_folders {
        add(folder.join(".agents/skills"), SkillScope::Repo);
    }
    for folder in extra {
        add(folder.clone(), SkillScope::User);
    }
    roots
}

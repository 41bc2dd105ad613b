//! The skills and plugins of a working directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use loomd_config::{ConfigError, ConfigSources, Feature, LoadRequest, LoadedConfig, WriteError};
use loomd_plugins::ActivePlugin;
use loomd_protocol::{AbsolutePathBuf, JsonObject};
use loomd_skills::{RootsRequest, SkillRoot, SkillRules, SkillSet};
use parking_lot::Mutex;

use super::needs::NeededServer;

/// Finds skills and plugins. Its functions block.
pub struct Extensions {
    sources: Arc<ConfigSources>,
    /// Set when the bundled skills have been written or removed.
    bundled: OnceLock<()>,
    /// A replay writes nothing.
    read_only: bool,
    /// Folders of clients, for all working directories, until the process ends.
    extra_roots: Mutex<Vec<AbsolutePathBuf>>,
}

impl Extensions {
    pub fn new(sources: Arc<ConfigSources>, read_only: bool) -> Self {
        Self { sources, bundled: OnceLock::new(), read_only, extra_roots: Mutex::default() }
    }

    /// Returns the skills of a working directory. `thread` is the configuration of a thread, `extra` are further
    /// folders.
    pub fn skills(
        &self,
        cwd: &AbsolutePathBuf,
        thread: Option<&JsonObject>,
        extra: &[PathBuf],
    ) -> Result<SkillSet, ConfigError> {
        self.prepare_bundled();
        let loaded = loomd_config::load(&LoadRequest { cwd: Some(cwd), thread, ..self.sources.request() })?;
        let roots = self.roots(&loaded, &self.plugins(&loaded), extra);
        Ok(loomd_skills::find(&roots, &SkillRules::of(&loaded.stack)))
    }

    /// Replaces the folders of clients. They need not exist.
    pub fn set_extra_roots(&self, roots: Vec<AbsolutePathBuf>) {
        *self.extra_roots.lock() = roots;
    }

    /// Returns the active plugins; none without the feature.
    pub fn plugins(&self, loaded: &LoadedConfig) -> Vec<ActivePlugin> {
        if loaded.config.plugins.is_empty() || !loaded.features().is_ok_and(|on| on.enabled(Feature::Plugins)) {
            return Vec::new();
        }
        loomd_plugins::active(&self.sources.home, &loaded.stack)
    }

    /// Returns the folders that are searched for skills.
    pub fn roots(&self, loaded: &LoadedConfig, plugins: &[ActivePlugin], extra: &[PathBuf]) -> Vec<SkillRoot> {
        let folders = |plugin: &ActivePlugin| {
            let id = plugin.id.to_string();
            plugin.skill_folders.iter().map(|folder| (folder.clone(), id.clone())).collect::<Vec<_>>()
        };
        let plugin_folders: Vec<(PathBuf, String)> = plugins.iter().flat_map(folders).collect();
        let mut extra = extra.to_vec();
        extra.extend(self.extra_roots.lock().iter().map(|root| root.to_path_buf()));
        loomd_skills::roots(&RootsRequest {
            config: loaded,
            home: &self.sources.home,
            user_home: self.sources.user_home.as_deref(),
            system_folder: self.sources.system_file.as_ref().and_then(|file| file.parent()),
            plugin_folders: &plugin_folders,
            extra: &extra,
        })
    }

    /// Adds MCP servers to the user's file, unless it has servers of these names.
    pub(crate) fn install_servers(&self, servers: &[NeededServer]) -> Result<(), WriteError> {
        let tables: JsonObject = servers.iter().map(|server| (server.name.clone(), server.table.clone())).collect();
        let wanted = JsonObject::from_iter([("mcp_servers".to_owned(), tables.into())]);
        let file = self.sources.request().user_file();
        loomd_config::import_missing(&self.sources.home, &file, &wanted, false).map(|_| ())
    }

    /// Writes the bundled skills, or removes them, as the configuration says that is of no project. Done once.
    pub fn prepare_bundled(&self) {
        if self.read_only || self.bundled.get().is_some() {
            return;
        }
        let Ok(loaded) = loomd_config::load(&self.sources.request()) else { return };
        self.bundled.get_or_init(|| {
            let bundled = loaded.config.skills.as_ref().and_then(|skills| skills.bundled.as_ref());
            let home: &Path = &self.sources.home;
            let done = if bundled.is_none_or(|bundled| bundled.enabled) {
                loomd_skills::install_bundled(home)
            } else {
                loomd_skills::remove_bundled(home)
            };
            if let Err(error) = done {
                tracing::warn!(%error, "cannot update the bundled skills");
            }
        });
    }
}

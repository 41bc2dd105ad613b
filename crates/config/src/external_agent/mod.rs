//! Imports what the user configured for another agent: settings, skills and instructions, from the home and from
//! repositories. Existing configuration always wins.

mod settings;
mod skills;
mod text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loomd_git::Repository;
use loomd_protocol::{
    AbsolutePathBuf, ExternalAgentConfigMigrationItem as MigrationItem,
    ExternalAgentConfigMigrationItemType as ItemType,
};
use thiserror::Error;

use crate::{WriteError, import_missing};

/// The paths to import from and to.
#[derive(Clone, Debug)]
pub struct ImportPaths {
    pub home: AbsolutePathBuf,
    /// `$HOME`
    pub user_home: Option<PathBuf>,
    /// Where relative paths start.
    pub cwd: PathBuf,
}

#[derive(Debug, Error)]
pub enum ImportError {
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Returns what can be imported: from the home, then from each repository.
pub fn detect(places: &ImportPaths, include_home: bool, cwds: &[String]) -> Result<Vec<MigrationItem>, ImportError> {
    let mut items = Vec::new();
    if include_home && let Some(scope) = Scope::home(places) {
        scope.detect(places, None, &mut items)?;
    }
    for cwd in cwds {
        if let Some(root) = repository(places, cwd) {
            Scope::repository(&root).detect(places, root.to_str(), &mut items)?;
        }
    }
    Ok(items)
}

/// Imports items in order; stops at the first failure.
pub fn import(places: &ImportPaths, items: &[MigrationItem]) -> Result<(), ImportError> {
    for item in items {
        let scope = match &item.cwd {
            None => Scope::home(places),
            Some(cwd) => repository(places, cwd).map(|root| Scope::repository(&root)),
        };
        if let Some(scope) = scope {
            scope.import(places, item.item_type)?;
        }
    }
    Ok(())
}

/// Returns the work tree of the repository around a folder or file, or else the folder itself. `None` if it does not
/// exist.
fn repository(places: &ImportPaths, cwd: &str) -> Option<PathBuf> {
    let path = AbsolutePathBuf::new(places.cwd.join(cwd))?;
    let folder = if fs::metadata(&path).ok()?.is_dir() { &*path } else { path.parent()? };
    Some(Repository::find(folder).map_or_else(|| folder.to_path_buf(), |repository| repository.work_tree))
}

/// The sources of one scope and their targets.
struct Scope {
    settings: PathBuf,
    config: PathBuf,
    skills: PathBuf,
    skills_target: PathBuf,
    /// The first one with text is used.
    instructions: Vec<PathBuf>,
    instructions_target: PathBuf,
}

impl Scope {
    fn home(places: &ImportPaths) -> Option<Self> {
        let theirs = places.user_home.as_ref()?.join(".claude");
        let beside_home = places.home.parent().unwrap_or(&places.home);
        Some(Self {
            settings: theirs.join("settings.json"),
            config: places.home.join("config.toml"),
            skills: theirs.join("skills"),
            skills_target: beside_home.join(".agents/skills"),
            instructions: vec![theirs.join("CLAUDE.md")],
            instructions_target: places.home.join("AGENTS.md"),
        })
    }

    fn repository(root: &Path) -> Self {
        let theirs = root.join(".claude");
        Self {
            settings: theirs.join("settings.json"),
            config: root.join(".codex/config.toml"),
            skills: theirs.join("skills"),
            skills_target: root.join(".agents/skills"),
            instructions: vec![root.join("CLAUDE.md"), theirs.join("CLAUDE.md")],
            instructions_target: root.join("AGENTS.md"),
        }
    }

    fn detect(
        &self,
        places: &ImportPaths,
        cwd: Option<&str>,
        items: &mut Vec<MigrationItem>,
    ) -> Result<(), ImportError> {
        let mut add = |item_type, description| {
            items.push(MigrationItem { item_type, description, cwd: cwd.map(str::to_owned) });
        };
        let from_to = |from: &Path, to: &Path| (from.display().to_string(), to.display().to_string());
        if self.import_settings(places, true)? {
            let (from, to) = from_to(&self.settings, &self.config);
            add(ItemType::Config, format!("Migrate {from} into {to}"));
        }
        if !skills::missing(&self.skills, &self.skills_target)?.is_empty() {
            let (from, to) = from_to(&self.skills, &self.skills_target);
            add(ItemType::Skills, format!("Copy skill folders from {from} to {to}"));
        }
        if let Some((source, _)) = self.instructions()? {
            let (from, to) = from_to(&source, &self.instructions_target);
            add(ItemType::AgentsMd, format!("Import {from} to {to}"));
        }
        Ok(())
    }

    fn import(&self, places: &ImportPaths, item_type: ItemType) -> Result<(), ImportError> {
        match item_type {
            ItemType::Config => _ = self.import_settings(places, false)?,
            ItemType::Skills => skills::copy(&self.skills, &self.skills_target)?,
            ItemType::AgentsMd => {
                if let Some((_, text)) = self.instructions()? {
                    let (target, text) = (&self.instructions_target, text::renamed(&text));
                    if target.starts_with(&places.home) {
                        loomd_private::create_dir_all(&places.home)?;
                        loomd_private::write(target, text)?;
                    } else {
                        fs::write(target, text)?;
                    }
                }
            }
            // MCP servers cannot be imported.
            ItemType::McpServerConfig => {}
        }
        Ok(())
    }

    /// Returns whether there was something to import.
    fn import_settings(&self, places: &ImportPaths, dry: bool) -> Result<bool, ImportError> {
        let Some(text) = read(&self.settings)? else { return Ok(false) };
        let wanted = settings::map(&text)?;
        let Some(config) = AbsolutePathBuf::new(&self.config) else { return Ok(false) };
        Ok(import_missing(&places.home, &config, &wanted, dry)?)
    }

    /// Returns the instructions to import, unless the target has instructions already.
    fn instructions(&self) -> Result<Option<(PathBuf, String)>, ImportError> {
        let is_blank = |text: &String| text.trim().is_empty();
        if read(&self.instructions_target)?.is_some_and(|text| !is_blank(&text)) {
            return Ok(None);
        }
        for source in &self.instructions {
            if let Some(text) = read(source)?.filter(|text| !is_blank(text)) {
                return Ok(Some((source.clone(), text)));
            }
        }
        Ok(None)
    }
}

/// The largest settings or instructions file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// Returns `None` if the file does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    match loomd_regular::read(path, MAX_BYTES) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

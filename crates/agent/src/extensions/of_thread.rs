//! The skills and plugins of a loaded thread.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_plugins::ActivePlugin;
use loomd_protocol::{AbsolutePathBuf, JsonObject, UserInput};
use loomd_skills::SkillSet;
use tokio::task::spawn_blocking;

use super::find::Extensions;

/// Longer instructions are not sent.
const MAX_SKILL: u64 = 1 << 20;

/// The skills and plugins of a thread. Plugins are fixed when the thread is loaded; skills are looked up when they are
/// needed, so that changes count.
#[derive(Clone, Default)]
pub struct ThreadExtensions {
    /// `None` for a thread without skills, as in tests.
    pub finder: Option<Arc<Extensions>>,
    pub plugins: Vec<ActivePlugin>,
    /// The folders that were searched for skills when the thread was loaded.
    pub skill_roots: Vec<PathBuf>,
}

impl ThreadExtensions {
    /// Writes the bundled skills, if that has not been done yet.
    pub(crate) fn prepare_bundled(&self) {
        if let Some(finder) = &self.finder {
            finder.prepare_bundled();
        }
    }
}

impl fmt::Debug for ThreadExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadExtensions").field("plugins", &self.plugins).finish_non_exhaustive()
    }
}

/// A skill that the user has named, with its whole file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedSkill {
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    /// Servers and variables that it needs.
    pub dependencies: Vec<loomd_protocol::SkillToolDependency>,
}

impl ThreadExtensions {
    /// Returns the skills of a working directory. `config` is the configuration that the client gave the thread. Empty
    /// when the configuration cannot be loaded any more.
    pub(crate) async fn skills(&self, cwd: &str, config: &JsonObject) -> SkillSet {
        let (Some(finder), Some(cwd)) = (&self.finder, AbsolutePathBuf::new(cwd)) else { return SkillSet::default() };
        let (finder, config) = (Arc::clone(finder), config.clone());
        let found = spawn_blocking(move || finder.skills(&cwd, Some(&config), &[])).await;
        match found {
            Ok(Ok(skills)) => skills,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot look for skills");
                SkillSet::default()
            }
            Err(error) => {
                tracing::error!(%error, "the search for skills failed");
                SkillSet::default()
            }
        }
    }

    /// Returns the skills that an input names, without those of `known`. One whose file cannot be read is left out.
    pub(crate) async fn named_skills(
        &self,
        cwd: &str,
        config: &JsonObject,
        input: &[UserInput],
        known: &HashSet<PathBuf>,
    ) -> Vec<NamedSkill> {
        if self.finder.is_none() || !may_name_skills(input) {
            return Vec::new();
        }
        let set = self.skills(cwd, config).await;
        let selected = loomd_skills::select(&set.skills, input, &HashSet::new());
        let selected = selected.into_iter().filter(|skill| !known.contains(&skill.path)).cloned().collect::<Vec<_>>();
        if selected.is_empty() {
            return Vec::new();
        }
        let read = spawn_blocking(move || {
            let named = |skill: loomd_skills::Skill| {
                let text = read_text(&skill.path)?;
                let dependencies = skill.dependencies.map_or_else(Vec::new, |dependencies| dependencies.tools);
                Some(NamedSkill { name: skill.name, path: skill.path, text, dependencies })
            };
            selected.into_iter().filter_map(named).collect()
        });
        read.await.unwrap_or_default()
    }

    /// Returns the plugins that an input mentions.
    pub(crate) fn mentioned_plugins(&self, input: &[UserInput]) -> Vec<&ActivePlugin> {
        if self.plugins.is_empty() { Vec::new() } else { loomd_plugins::mentioned(&self.plugins, input) }
    }
}

/// Whether an input can name a skill at all, so that most turns need not look for any.
fn may_name_skills(input: &[UserInput]) -> bool {
    input.iter().any(|part| match part {
        UserInput::Skill { .. } => true,
        UserInput::Text { text, .. } => text.contains('$'),
        _ => false,
    })
}

fn read_text(path: &Path) -> Option<String> {
    let text = loomd_regular::read_to_string(path, MAX_SKILL);
    text.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "cannot read a skill")).ok()
}

//! What is known about a skill, and where skills are looked for.

use std::path::PathBuf;

use loomd_protocol::{SkillDependencies, SkillErrorInfo, SkillInterface, SkillMetadata, SkillScope, SkillSummary};

/// A skill that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// With the prefix of its plugin, if it has one.
    pub name: String,
    pub description: String,
    pub short_description: Option<String>,
    pub interface: Option<SkillInterface>,
    pub dependencies: Option<SkillDependencies>,
    /// Whether the model is told of it without being asked to use it.
    pub allow_implicit_invocation: bool,
    /// Its `SKILL.md`, with symlinks resolved.
    pub path: PathBuf,
    pub scope: SkillScope,
    pub enabled: bool,
    /// The installed plugin that it belongs to, `name@marketplace`.
    pub plugin_id: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillSet {
    /// Sorted by scope, name and path.
    pub skills: Vec<Skill>,
    /// The `SKILL.md` files that are no skills, and why.
    pub errors: Vec<SkillErrorInfo>,
}

/// A folder that is searched for skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillRoot {
    pub folder: PathBuf,
    pub scope: SkillScope,
    /// The installed plugin whose folder it is, `name@marketplace`.
    pub plugin_id: Option<String>,
}

impl Skill {
    /// The path as text. Characters that are no UTF-8 are replaced.
    pub fn path_text(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    pub fn to_wire(&self) -> SkillMetadata {
        SkillMetadata {
            name: self.name.clone(),
            description: self.description.clone(),
            short_description: self.short_description.clone(),
            interface: self.interface.clone(),
            dependencies: self.dependencies.clone(),
            path: self.path_text(),
            scope: self.scope,
            enabled: self.enabled,
            plugin_id: self.plugin_id.clone(),
        }
    }

    /// The form of `plugin/read`.
    pub fn to_summary(&self) -> SkillSummary {
        SkillSummary {
            name: self.name.clone(),
            description: self.description.clone(),
            short_description: self.short_description.clone(),
            interface: self.interface.clone(),
            path: self.path_text(),
            enabled: self.enabled,
        }
    }
}

impl SkillSet {
    pub fn enabled(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|skill| skill.enabled)
    }
}

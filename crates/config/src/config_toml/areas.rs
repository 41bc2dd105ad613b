//! Small tables: history, projects, skills, plugins, memories, feedback, realtime.

use std::path::PathBuf;

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct History {
    pub persistence: HistoryPersistence,
    pub max_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryPersistence {
    #[default]
    SaveAll,
    None,
}

/// `[projects."<path>"]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Project {
    pub trust_level: Option<TrustLevel>,
}

impl super::ConfigToml {
    /// Returns the folders of projects with `trust_level = "trusted"`.
    pub fn trusted_projects(&self) -> Vec<PathBuf> {
        let trusted = self.projects.iter().filter(|(_, project)| project.trust_level == Some(TrustLevel::Trusted));
        trusted.map(|(path, _)| path.into()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    Trusted,
    Untrusted,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Skills {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundled: Option<BundledSkills>,
    /// In file order; later rules win.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<SkillRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BundledSkills {
    pub enabled: bool,
}

impl Default for BundledSkills {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Selects skills by path or by name. A rule with both or neither has no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRule {
    pub path: Option<AbsolutePathBuf>,
    pub name: Option<String>,
    pub enabled: bool,
}

/// `[plugins."<plugin>@<marketplace>"]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginSettings {
    pub enabled: bool,
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memories {
    pub generate_memories: Option<bool>,
    pub use_memories: Option<bool>,
    pub no_memories_if_mcp_or_web_search: Option<bool>,
    pub max_raw_memories_for_consolidation: Option<usize>,
    pub max_unused_days: Option<i64>,
    pub max_rollout_age_days: Option<i64>,
    pub max_rollouts_per_startup: Option<usize>,
    pub min_rollout_idle_hours: Option<i64>,
    pub extract_model: Option<String>,
    pub consolidation_model: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Feedback {
    pub enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Realtime {
    pub version: Option<RealtimeVersion>,
    #[serde(rename = "type")]
    pub kind: Option<RealtimeKind>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RealtimeVersion {
    #[default]
    V1,
    V2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RealtimeKind {
    Conversational,
    Transcription,
}

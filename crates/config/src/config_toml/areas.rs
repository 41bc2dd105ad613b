//! Small tables: history, projects, skills, plugins, memories, feedback, realtime.

use std::path::PathBuf;

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct History {
    /// Whether the inputs of the chat are kept in `history.jsonl` of the home.
    pub persistence: HistoryPersistence,
    /// The largest size of that file in bytes; the oldest inputs are removed first.
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
    /// Whether the configuration, rules and hooks of the project are used.
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
    /// The skills that come with loomd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundled: Option<BundledSkills>,
    /// Rules that enable and disable skills; the last one about a skill counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<SkillRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BundledSkills {
    /// Whether they are used. Default: `true`.
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
    /// The `SKILL.md` of the skill.
    pub path: Option<AbsolutePathBuf>,
    /// The name of the skill.
    pub name: Option<String>,
    /// Whether the skill is enabled.
    pub enabled: bool,
}

/// `[plugins."<plugin>@<marketplace>"]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginSettings {
    /// Whether the plugin is used. Default: `true`.
    pub enabled: bool,
}

/// `[marketplaces.<name>]`: a marketplace that the user added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MarketplaceSettings {
    /// `local` or `git`.
    pub source_type: Option<String>,
    /// A folder, or the URL of a repository.
    pub source: Option<String>,
    /// The branch, tag or commit of a repository.
    pub r#ref: Option<String>,
    /// The folders of a repository that are fetched.
    pub sparse_paths: Option<Vec<String>>,
    /// The commit that was fetched last.
    pub commit: Option<String>,
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memories {
    /// Accepted for other programs that share the file; no effect.
    pub generate_memories: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub use_memories: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub no_memories_if_mcp_or_web_search: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub max_raw_memories_for_consolidation: Option<usize>,
    /// Accepted for other programs that share the file; no effect.
    pub max_unused_days: Option<i64>,
    /// Accepted for other programs that share the file; no effect.
    pub max_rollout_age_days: Option<i64>,
    /// Accepted for other programs that share the file; no effect.
    pub max_rollouts_per_startup: Option<usize>,
    /// Accepted for other programs that share the file; no effect.
    pub min_rollout_idle_hours: Option<i64>,
    /// Accepted for other programs that share the file; no effect.
    pub extract_model: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub consolidation_model: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Feedback {
    /// Whether `feedback/upload` is accepted. Default: `true`.
    pub enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Realtime {
    /// The version of the wire. Default: `v1`.
    pub version: Option<RealtimeVersion>,
    /// Whether the session speaks, or only transcribes. Default: `conversational`.
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

//! What is known about models.

use std::path::{Path, PathBuf};

use loomd_protocol::{
    InputModality, Model, ModelUpgradeInfo, ReasoningEffort, ReasoningEffortOption, ReasoningSummary, Verbosity,
};

#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Vec<ModelInfo>,
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("failed to read model catalogue {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("failed to parse model catalogue {path}: {source}")]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("model catalogue {path} has no models")]
    Empty { path: PathBuf },
}

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The name that was asked for, which may be longer than that of the entry.
    pub slug: String,
    /// False when nothing is known and everything below is a guess.
    pub known: bool,
    pub display_name: String,
    pub description: String,
    pub hidden: bool,
    pub context_window: i64,
    pub auto_compact_token_limit: Option<i64>,
    /// `None` for a model that does not reason.
    pub default_effort: Option<ReasoningEffort>,
    pub supported_efforts: Vec<ReasoningEffortOption>,
    pub supports_reasoning_summaries: bool,
    pub default_summary: ReasoningSummary,
    pub supports_verbosity: bool,
    pub default_verbosity: Option<Verbosity>,
    pub apply_patch: Option<ApplyPatch>,
    pub parallel_tool_calls: bool,
    pub truncation: Truncation,
    pub input_modalities: Vec<InputModality>,
    pub supports_personality: bool,
    pub shell: ShellTool,
    pub upgrade: Option<ModelUpgradeInfo>,
    /// The model's own instructions, when the catalogue has them.
    pub instructions: Option<String>,
}

/// The form of the patch tool that a model is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyPatch {
    Freeform,
    Function,
}

/// The shell tool that a model is offered where there is no unified one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellTool {
    #[default]
    Shell,
    ShellCommand,
    LocalShell,
    UnifiedExec,
    Disabled,
}

/// How much of a tool's output a model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    Bytes(usize),
    Tokens(usize),
}

impl Catalogue {
    /// The models that this release knows.
    pub fn bundled() -> Self {
        Self { models: Vec::new() }
    }

    pub fn from_json_file(path: &Path) -> Result<Self, CatalogueError> {
        Err(CatalogueError::Empty { path: path.into() })
    }

    /// What is known about a model: the entry with the longest name that this one begins with.
    pub fn find(&self, name: &str) -> ModelInfo {
        self.models.iter().find(|model| name.starts_with(&model.slug)).cloned().unwrap_or_else(|| unknown(name))
    }

    /// `model/list`.
    pub fn list(&self, _include_hidden: bool) -> Vec<Model> {
        Vec::new()
    }
}

fn unknown(name: &str) -> ModelInfo {
    ModelInfo {
        slug: name.into(),
        known: false,
        display_name: name.into(),
        description: String::new(),
        hidden: false,
        context_window: 272_000,
        auto_compact_token_limit: None,
        default_effort: None,
        supported_efforts: Vec::new(),
        supports_reasoning_summaries: false,
        default_summary: ReasoningSummary::Auto,
        supports_verbosity: false,
        default_verbosity: None,
        apply_patch: Some(ApplyPatch::Function),
        parallel_tool_calls: false,
        truncation: Truncation::Bytes(10_000),
        input_modalities: vec![InputModality::Text, InputModality::Image],
        supports_personality: false,
        shell: ShellTool::Shell,
        upgrade: None,
        instructions: None,
    }
}

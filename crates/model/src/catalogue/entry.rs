//! The file format of a catalogue (`model_catalog_json`).

use loomd_protocol::{
    InputModality, ModelAvailabilityNux, ModelUpgradeInfo, ReasoningEffort, ReasoningEffortOption, ReasoningSummary,
    Verbosity,
};
use serde::Deserialize;

use super::{ApplyPatch, CONTEXT_WINDOW, Catalogue, ModelInfo, ShellTool, Truncation, USABLE_WINDOW_PERCENT};

#[derive(Default, Deserialize)]
pub(super) struct CatalogueFile {
    models: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    slug: String,
    display_name: String,
    description: Option<String>,
    default_reasoning_level: Option<ReasoningEffort>,
    supported_reasoning_levels: Vec<Level>,
    shell_type: ShellType,
    visibility: Visibility,
    priority: i64,
    base_instructions: Option<String>,
    supports_reasoning_summaries: bool,
    default_reasoning_summary: Option<ReasoningSummary>,
    support_verbosity: bool,
    default_verbosity: Option<Verbosity>,
    apply_patch_tool_type: Option<PatchType>,
    truncation_policy: Policy,
    supports_parallel_tool_calls: bool,
    context_window: Option<i64>,
    auto_compact_token_limit: Option<i64>,
    effective_context_window_percent: Option<i64>,
    input_modalities: Option<Vec<InputModality>>,
    #[serde(default)]
    supports_personality: bool,
    #[serde(default)]
    supports_search_tool: bool,
    #[serde(default)]
    supports_image_detail_original: bool,
    web_search_tool_type: Option<WebSearchType>,
    upgrade: Option<Upgrade>,
    availability_nux: Option<ModelAvailabilityNux>,
}

#[derive(Deserialize)]
struct Level {
    effort: ReasoningEffort,
    description: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShellType {
    Default,
    Local,
    UnifiedExec,
    Disabled,
    ShellCommand,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Visibility {
    List,
    Hide,
    None,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PatchType {
    Freeform,
    Function,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum WebSearchType {
    Text,
    TextAndImage,
}

#[derive(Deserialize)]
struct Policy {
    mode: Mode,
    limit: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Bytes,
    Tokens,
}

#[derive(Deserialize)]
struct Upgrade {
    model: String,
    migration_markdown: Option<String>,
}

impl From<CatalogueFile> for Catalogue {
    fn from(mut file: CatalogueFile) -> Self {
        file.models.sort_by_key(|entry| entry.priority);
        Self { models: file.models.into_iter().map(ModelInfo::from).collect() }
    }
}

impl From<Entry> for ModelInfo {
    fn from(entry: Entry) -> Self {
        let efforts = entry.supported_reasoning_levels.into_iter();
        Self {
            slug: entry.slug,
            known: true,
            display_name: entry.display_name,
            description: entry.description.unwrap_or_default(),
            hidden: entry.visibility != Visibility::List,
            context_window: entry.context_window.unwrap_or(CONTEXT_WINDOW),
            usable_window_percent: entry.effective_context_window_percent.unwrap_or(USABLE_WINDOW_PERCENT),
            auto_compact_token_limit: entry.auto_compact_token_limit,
            default_effort: entry.default_reasoning_level,
            supported_efforts: efforts
                .map(|Level { effort, description }| ReasoningEffortOption { reasoning_effort: effort, description })
                .collect(),
            supports_reasoning_summaries: entry.supports_reasoning_summaries,
            default_summary: entry.default_reasoning_summary.unwrap_or(ReasoningSummary::Auto),
            supports_verbosity: entry.support_verbosity,
            default_verbosity: entry.default_verbosity,
            apply_patch: entry.apply_patch_tool_type.map(|kind| match kind {
                PatchType::Freeform => ApplyPatch::Freeform,
                PatchType::Function => ApplyPatch::Function,
            }),
            parallel_tool_calls: entry.supports_parallel_tool_calls,
            truncation: match entry.truncation_policy.mode {
                Mode::Bytes => Truncation::Bytes(entry.truncation_policy.limit),
                Mode::Tokens => Truncation::Tokens(entry.truncation_policy.limit),
            },
            input_modalities: entry.input_modalities.unwrap_or_else(|| vec![InputModality::Text, InputModality::Image]),
            supports_personality: entry.supports_personality,
            supports_tool_search: entry.supports_search_tool,
            supports_original_image_detail: entry.supports_image_detail_original,
            web_search_images: entry.web_search_tool_type == Some(WebSearchType::TextAndImage),
            shell: match entry.shell_type {
                ShellType::Default => ShellTool::Shell,
                ShellType::Local => ShellTool::LocalShell,
                ShellType::UnifiedExec => ShellTool::UnifiedExec,
                ShellType::Disabled => ShellTool::Disabled,
                ShellType::ShellCommand => ShellTool::ShellCommand,
            },
            upgrade: entry.upgrade.map(|upgrade| ModelUpgradeInfo {
                model: upgrade.model,
                upgrade_copy: None,
                model_link: None,
                migration_markdown: upgrade.migration_markdown,
            }),
            availability_nux: entry.availability_nux,
            instructions: entry.base_instructions.filter(|text| !text.is_empty()).map(Into::into),
        }
    }
}

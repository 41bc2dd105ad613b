//! The catalogue of models: the bundled one, or the user's file in its place.

mod entry;
mod families;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use loomd_protocol::{
    InputModality, Model, ModelAvailabilityNux, ModelUpgradeInfo, ReasoningEffort, ReasoningEffortOption,
    ReasoningSummary, Verbosity,
};

use self::entry::CatalogueFile;

/// The known models, in display order.
#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Arc<[ModelInfo]>,
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("failed to read model_catalog_json path `{}`: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("failed to parse model_catalog_json path `{}` as JSON: {source}", path.display())]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("model_catalog_json path `{}` must contain at least one model", path.display())]
    Empty { path: PathBuf },
}

/// The entry of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The requested name, which may be longer than the slug of the matching entry.
    pub slug: String,
    /// False when no entry or family matches and everything below is a default.
    pub known: bool,
    pub display_name: String,
    pub description: String,
    pub hidden: bool,
    pub context_window: i64,
    /// The share of the window that is used; the rest covers what cannot be counted exactly.
    pub usable_window_percent: i64,
    pub auto_compact_token_limit: Option<i64>,
    /// `None` leaves the choice to the provider.
    pub default_effort: Option<ReasoningEffort>,
    pub supported_efforts: Vec<ReasoningEffortOption>,
    /// False omits `reasoning` from requests altogether.
    pub supports_reasoning_summaries: bool,
    pub default_summary: ReasoningSummary,
    pub supports_verbosity: bool,
    pub default_verbosity: Option<Verbosity>,
    pub apply_patch: Option<ApplyPatch>,
    pub parallel_tool_calls: bool,
    pub truncation: Truncation,
    pub input_modalities: Vec<InputModality>,
    pub supports_personality: bool,
    pub supports_tool_search: bool,
    pub supports_original_image_detail: bool,
    pub web_search_images: bool,
    pub shell: ShellTool,
    pub upgrade: Option<ModelUpgradeInfo>,
    pub availability_nux: Option<ModelAvailabilityNux>,
    /// The model's base instructions, if the catalogue has them.
    pub instructions: Option<Arc<str>>,
}

/// The form in which the patch tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyPatch {
    /// Free text under a grammar.
    Freeform,
    /// A function with JSON arguments.
    Function,
}

/// The shell tool that is offered where unified exec is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellTool {
    #[default]
    Shell,
    ShellCommand,
    LocalShell,
    UnifiedExec,
    Disabled,
}

/// The limit on the part of a tool's output that is sent to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    Bytes(usize),
    Tokens(usize),
}

/// The bundled catalogue, in the format of `model_catalog_json`.
const BUNDLED: &str = include_str!("models.json");

const CONTEXT_WINDOW: i64 = 272_000;
const USABLE_WINDOW_PERCENT: i64 = 95;

/// The largest catalogue file that is read.
const MAX_BYTES: u64 = 16 << 20;

impl Catalogue {
    /// Returns the models that this release knows.
    pub fn bundled() -> Self {
        // A test parses the file, so the default is never used.
        static MODELS: LazyLock<Catalogue> =
            LazyLock::new(|| serde_json::from_str::<CatalogueFile>(BUNDLED).unwrap_or_default().into());
        MODELS.clone()
    }

    /// Reads the file that `model_catalog_json` names.
    pub fn from_json_file(path: &Path) -> Result<Self, CatalogueError> {
        let text = loomd_regular::read(path, MAX_BYTES)
            .map_err(|source| CatalogueError::Read { path: path.into(), source })?;
        let file: CatalogueFile =
            serde_json::from_slice(&text).map_err(|source| CatalogueError::Parse { path: path.into(), source })?;
        let catalogue = Self::from(file);
        if catalogue.models.is_empty() {
            return Err(CatalogueError::Empty { path: path.into() });
        }
        Ok(catalogue)
    }

    /// Returns the entry of a model: the one with the longest slug that `name` starts with. If there is none,
    /// `name` in `namespace/name` is looked up, then the families.
    pub fn find(&self, name: &str) -> ModelInfo {
        let known = self.entry(name).or_else(|| self.entry(name.split_once('/').filter(is_namespace)?.1));
        match known {
            Some(entry) => ModelInfo { slug: name.into(), ..entry.clone() },
            None => families::find(name).unwrap_or_else(|| ModelInfo::unknown(name)),
        }
    }

    /// The model of a thread that does not name one.
    pub fn default_model(&self) -> &str {
        let default = self.models.iter().find(|model| !model.hidden).or(self.models.first());
        default.map_or("", |model| &model.slug)
    }

    /// The result of `model/list`.
    pub fn list(&self, include_hidden: bool) -> Vec<Model> {
        let shown = self.models.iter().filter(|model| include_hidden || !model.hidden);
        shown.map(|model| model.to_wire(model.slug == self.default_model())).collect()
    }

    fn entry(&self, name: &str) -> Option<&ModelInfo> {
        self.models.iter().filter(|model| name.starts_with(&model.slug)).max_by_key(|model| model.slug.len())
    }
}

/// Whether the part before `/` is a namespace: letters, digits, `_` and `-`, with no further `/` behind it.
fn is_namespace((word, name): &(&str, &str)) -> bool {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !word.is_empty() && word.chars().all(in_word) && !name.contains('/')
}

impl ModelInfo {
    /// The defaults for an unknown model. It is not assumed to reason, and gets the patch tool as a plain function.
    fn unknown(name: &str) -> Self {
        Self {
            slug: name.into(),
            known: false,
            display_name: name.into(),
            description: String::new(),
            hidden: true,
            context_window: CONTEXT_WINDOW,
            usable_window_percent: USABLE_WINDOW_PERCENT,
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
            supports_tool_search: false,
            supports_original_image_detail: false,
            web_search_images: false,
            shell: ShellTool::Shell,
            upgrade: None,
            availability_nux: None,
            instructions: None,
        }
    }

    fn to_wire(&self, is_default: bool) -> Model {
        Model {
            id: self.slug.clone(),
            model: self.slug.clone(),
            // Clients that find one for the default model ask their users to leave it.
            upgrade: self.upgrade.as_ref().filter(|_| !is_default).map(|upgrade| upgrade.model.clone()),
            upgrade_info: self.upgrade.clone().filter(|_| !is_default),
            availability_nux: self.availability_nux.clone(),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            hidden: self.hidden,
            supported_reasoning_efforts: self.supported_efforts.clone(),
            default_reasoning_effort: self.default_effort.clone().unwrap_or(ReasoningEffort::None),
            input_modalities: self.input_modalities.clone(),
            supports_personality: self.supports_personality,
            is_default,
            service_tiers: Vec::new(),
            additional_speed_tiers: Vec::new(),
            default_service_tier: None,
            multi_agent_version: None,
            model_specialty: None,
            available_access_programs: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(name: &str, entry: Option<&str>) {
        let found = Catalogue::bundled().find(name);
        let shown = found.known.then_some(&*found.display_name);
        assert_eq!((&*found.slug, shown), (name, entry));
    }

    #[test]
    fn the_entry_with_the_longest_matching_slug_is_found() {
        check("gpt-5.2", Some("gpt-5.2"));
        check("gpt-5.1-codex-foo", Some("gpt-5.1-codex"));
        check("gpt-5.1-codex-max-2", Some("gpt-5.1-codex-max"));
        check("gpt-5-2025-08-07", Some("gpt-5"));
        check("gpt-5.9", Some("gpt-5"));
        check("openai/gpt-oss-20b", Some("gpt-oss-20b"));
        check("my_team-1/gpt-5.4", Some("gpt-5.4"));
        check("a/b/gpt-5.4", None);
        check("a.b/gpt-5.4", None);
        check("/gpt-5.4", None);
        check("llama", None);
        check("", None);
    }

    #[test]
    fn the_bundled_models_are_those_of_the_recorded_release_in_order_and_a_later_one() {
        let listed = |hidden| Catalogue::bundled().list(hidden).into_iter().map(|model| model.id).collect::<Vec<_>>();
        let visible =
            ["gpt-5.3-codex", "gpt-5.4", "gpt-5.2-codex", "gpt-5.1-codex-max", "gpt-5.2", "gpt-5.1-codex-mini"];
        assert_eq!(listed(false), visible);
        assert_eq!(listed(true).len(), 13 + 1);
        assert_eq!(listed(true).last().unwrap(), "gpt-5.5");
    }

    #[test]
    fn exactly_one_model_is_default_and_default_efforts_are_supported() {
        let models = Catalogue::bundled().list(true);
        let defaults: Vec<_> = models.iter().filter(|model| model.is_default).map(|model| &*model.id).collect();
        assert_eq!(defaults, ["gpt-5.3-codex"]);
        for model in models {
            let supported = model.supported_reasoning_efforts.iter();
            assert!(
                supported.into_iter().any(|it| it.reasoning_effort == model.default_reasoning_effort),
                "{}",
                model.id
            );
        }
    }

    #[test]
    fn catalogue_entries_are_decoded() {
        let model = Catalogue::bundled().find("gpt-5.2");
        let expected = ModelInfo {
            known: true,
            description: "A general model with broad knowledge that also codes.".into(),
            hidden: false,
            default_effort: Some(ReasoningEffort::Medium),
            supported_efforts: model.supported_efforts.clone(),
            supports_reasoning_summaries: true,
            supports_verbosity: true,
            default_verbosity: Some(Verbosity::Low),
            apply_patch: Some(ApplyPatch::Freeform),
            parallel_tool_calls: true,
            shell: ShellTool::ShellCommand,
            upgrade: Some(ModelUpgradeInfo {
                model: "gpt-5.4".into(),
                upgrade_copy: None,
                model_link: None,
                migration_markdown: None,
            }),
            ..ModelInfo::unknown("gpt-5.2")
        };
        assert_eq!(model, expected);
        let oss = Catalogue::bundled().find("gpt-oss-20b");
        assert_eq!((oss.context_window, oss.input_modalities), (128_000, vec![InputModality::Text]));
        assert_eq!(Catalogue::bundled().find("gpt-5").apply_patch, None);
    }

    fn from_file(text: &str) -> Result<Catalogue, String> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("models.json");
        fs::write(&path, text).unwrap();
        Catalogue::from_json_file(&path).map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "FILE"))
    }

    #[test]
    fn a_catalogue_file_replaces_the_bundled_models() {
        let catalogue = from_file(
            r#"{"models": [
                {"slug": "second", "display_name": "Second", "supported_reasoning_levels": [], "shell_type": "local",
                 "visibility": "list", "supported_in_api": true, "priority": 2, "base_instructions": "BASE",
                 "supports_reasoning_summaries": false, "support_verbosity": false,
                 "truncation_policy": {"mode": "tokens", "limit": 7}, "supports_parallel_tool_calls": true,
                 "experimental_supported_tools": [], "apply_patch_tool_type": "function", "context_window": 9},
                {"slug": "first", "display_name": "First", "supported_reasoning_levels": [], "shell_type": "disabled",
                 "visibility": "none", "priority": 1, "supports_reasoning_summaries": false,
                 "support_verbosity": false, "truncation_policy": {"mode": "bytes", "limit": 7},
                 "supports_parallel_tool_calls": false}
            ]}"#,
        )
        .unwrap();
        let listed: Vec<_> = catalogue.list(true).into_iter().map(|model| (model.id, model.is_default)).collect();
        assert_eq!(listed, [("first".to_owned(), false), ("second".to_owned(), true)]);
        let expected = ModelInfo {
            known: true,
            display_name: "Second".into(),
            hidden: false,
            context_window: 9,
            apply_patch: Some(ApplyPatch::Function),
            parallel_tool_calls: true,
            truncation: Truncation::Tokens(7),
            shell: ShellTool::LocalShell,
            instructions: Some("BASE".into()),
            ..ModelInfo::unknown("second")
        };
        assert_eq!(catalogue.find("second"), expected);
    }

    #[test]
    fn errors_name_the_catalogue_file_and_the_problem() {
        let check = |text: &str, expected: &str| assert_eq!(from_file(text).unwrap_err(), expected, "{text}");
        let parse = "failed to parse model_catalog_json path `FILE` as JSON: ";
        check("{}", &format!("{parse}missing field `models` at line 1 column 2"));
        check(r#"{"models":[{}]}"#, &format!("{parse}missing field `slug` at line 1 column 13"));
        check(r#"{"models":[]}"#, "model_catalog_json path `FILE` must contain at least one model");
        let missing = Catalogue::from_json_file(Path::new("/nowhere")).unwrap_err().to_string();
        assert_eq!(
            missing,
            "failed to read model_catalog_json path `/nowhere`: No such file or directory (os error 2)"
        );
    }
}

//! Feature flags: all of them, their deprecated names, and which are enabled.

use std::collections::BTreeMap;

use loomd_protocol::ExperimentalFeatureStage as Stage;
use loomd_protocol::ExperimentalFeatureStage::*;
use parking_lot::Mutex;
use thiserror::Error;
use toml::Table;

macro_rules! features {
    ($($feature:ident = $name:literal, $stage:ident, $default:expr;)*) => {
        /// A feature flag. The order is that of `experimentalFeature/list`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($feature,)*
        }

        impl Feature {
            pub const ALL: &[Self] = &[$(Self::$feature,)*];

            /// The key in `[features]`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$feature => $name,)*
                }
            }

            pub fn stage(self) -> Stage {
                match self {
                    $(Self::$feature => $stage,)*
                }
            }

            pub fn default_enabled(self) -> bool {
                match self {
                    $(Self::$feature => $default,)*
                }
            }
        }
    };
}

const ON: bool = true;
const OFF: bool = false;

features! {
    Undo = "undo", Stable, OFF;
    ShellTool = "shell_tool", Stable, ON;
    UnifiedExec = "unified_exec", Stable, cfg!(not(windows));
    ShellZshFork = "shell_zsh_fork", UnderDevelopment, OFF;
    ShellSnapshot = "shell_snapshot", Stable, ON;
    JsRepl = "js_repl", Beta, OFF;
    CodeMode = "code_mode", UnderDevelopment, OFF;
    CodeModeOnly = "code_mode_only", UnderDevelopment, OFF;
    JsReplToolsOnly = "js_repl_tools_only", UnderDevelopment, OFF;
    WebSearchRequest = "web_search_request", Deprecated, OFF;
    WebSearchCached = "web_search_cached", Deprecated, OFF;
    SearchTool = "search_tool", Removed, OFF;
    CodexGitCommit = "codex_git_commit", UnderDevelopment, OFF;
    RuntimeMetrics = "runtime_metrics", UnderDevelopment, OFF;
    Sqlite = "sqlite", Removed, ON;
    Memories = "memories", UnderDevelopment, OFF;
    ChildAgentsMd = "child_agents_md", UnderDevelopment, OFF;
    ImageDetailOriginal = "image_detail_original", UnderDevelopment, OFF;
    ApplyPatchFreeform = "apply_patch_freeform", UnderDevelopment, OFF;
    ExecPermissionApprovals = "exec_permission_approvals", UnderDevelopment, OFF;
    CodexHooks = "codex_hooks", UnderDevelopment, OFF;
    RequestPermissionsTool = "request_permissions_tool", UnderDevelopment, OFF;
    UseLinuxSandboxBwrap = "use_linux_sandbox_bwrap", Removed, OFF;
    UseLegacyLandlock = "use_legacy_landlock", Stable, OFF;
    RequestRule = "request_rule", Removed, OFF;
    ExperimentalWindowsSandbox = "experimental_windows_sandbox", Removed, OFF;
    ElevatedWindowsSandbox = "elevated_windows_sandbox", Removed, OFF;
    RemoteModels = "remote_models", Removed, OFF;
    EnableRequestCompression = "enable_request_compression", Stable, ON;
    MultiAgent = "multi_agent", Stable, ON;
    MultiAgentV2 = "multi_agent_v2", UnderDevelopment, OFF;
    EnableFanout = "enable_fanout", UnderDevelopment, OFF;
    Apps = "apps", Stable, ON;
    ToolSearch = "tool_search", UnderDevelopment, OFF;
    ToolSuggest = "tool_suggest", Stable, ON;
    Plugins = "plugins", Stable, ON;
    ImageGeneration = "image_generation", UnderDevelopment, OFF;
    SkillMcpDependencyInstall = "skill_mcp_dependency_install", Stable, ON;
    SkillEnvVarDependencyPrompt = "skill_env_var_dependency_prompt", UnderDevelopment, OFF;
    Steer = "steer", Removed, ON;
    DefaultModeRequestUserInput = "default_mode_request_user_input", UnderDevelopment, OFF;
    GuardianApproval = "guardian_approval", Beta, OFF;
    CollaborationModes = "collaboration_modes", Removed, ON;
    ToolCallMcpElicitation = "tool_call_mcp_elicitation", Stable, ON;
    Personality = "personality", Stable, ON;
    Artifact = "artifact", UnderDevelopment, OFF;
    FastMode = "fast_mode", Stable, ON;
    RealtimeConversation = "realtime_conversation", UnderDevelopment, OFF;
    TuiAppServer = "tui_app_server", Removed, ON;
    PreventIdleSleep = "prevent_idle_sleep", Beta, OFF;
    ResponsesWebsockets = "responses_websockets", Removed, OFF;
    ResponsesWebsocketsV2 = "responses_websockets_v2", Removed, OFF;
    Goals = "goals", Stable, ON;
    ApplyPatchStreamingEvents = "apply_patch_streaming_events", UnderDevelopment, OFF;
}

/// Deprecated names in `[features]`.
const ALIASES: &[(&str, Feature)] = &[
    ("collab", Feature::MultiAgent),
    ("connectors", Feature::Apps),
    ("enable_experimental_windows_sandbox", Feature::ExperimentalWindowsSandbox),
    ("experimental_use_freeform_apply_patch", Feature::ApplyPatchFreeform),
    ("experimental_use_unified_exec_tool", Feature::UnifiedExec),
    ("include_apply_patch_tool", Feature::ApplyPatchFreeform),
    ("memory_tool", Feature::Memories),
    ("request_permissions", Feature::ExecPermissionApprovals),
    ("web_search", Feature::WebSearchRequest),
];

/// Deprecated names that may also be at the top level or in a profile.
const TOGGLES: &[&str] =
    &["include_apply_patch_tool", "experimental_use_freeform_apply_patch", "experimental_use_unified_exec_tool"];

/// The texts that present a beta feature to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presentation {
    pub title: &'static str,
    pub description: &'static str,
    pub announcement: &'static str,
}

impl Feature {
    /// Returns `None` unless the feature is in beta.
    pub fn presentation(self) -> Option<Presentation> {
        let (title, description, announcement) = match self {
            Self::JsRepl => {
                ("JavaScript session", "The agent may run JavaScript in a session that keeps its values.", "")
            }
            Self::GuardianApproval => (
                "Approvals by a second agent",
                "A second agent looks at what the first asks approval for, and asks you only when in doubt.",
                "",
            ),
            Self::PreventIdleSleep => ("Stay awake", "The computer does not go to sleep while the agent works.", ""),
            _ => return None,
        };
        Some(Presentation { title, description, announcement })
    }

    /// Returns what an enabled feature does; `None` if it has no effect.
    pub fn description(self) -> Option<&'static str> {
        Some(match self {
            Self::ShellTool => "The model may run commands.",
            Self::UnifiedExec => "Commands may outlive the call that started them.",
            Self::ShellSnapshot => "A login shell's start-up files run once per thread instead of once per command.",
            Self::ApplyPatchFreeform => "Models that are in no catalogue write patches as free text.",
            Self::ExecPermissionApprovals => "The model may request permissions for a single command.",
            Self::CodexHooks => "Runs the hooks of `hooks.json`.",
            Self::RequestPermissionsTool => "The model may request permissions for a turn or a session.",
            Self::UseLegacyLandlock => "Sandboxes use Landlock only.",
            Self::MultiAgent => "The model may start child agents.",
            Self::Apps => "Offers the tools of the apps of a ChatGPT account.",
            Self::ToolSearch => "The model searches for tools of apps instead of being sent all of them.",
            Self::ToolSuggest => "The model may suggest apps to install.",
            Self::Plugins => "Threads use installed plugins.",
            Self::ImageGeneration => "The model may generate images with the provider's tool.",
            Self::SkillMcpDependencyInstall => "Offers to install the MCP servers that a mentioned skill needs.",
            Self::SkillEnvVarDependencyPrompt => "Asks for environment variables that a mentioned skill needs.",
            Self::DefaultModeRequestUserInput => "The model may ask questions outside of plan mode, too.",
            Self::ToolCallMcpElicitation => "Calls of MCP tools are approved by elicitations instead of questions.",
            Self::Personality => "`personality` is applied.",
            Self::RealtimeConversation => "Permits realtime sessions.",
            Self::Goals => "Threads may have goals, which start turns until they are reached.",
            Self::ApplyPatchStreamingEvents => "Clients are shown patches while the model writes them.",
            _ => return None,
        })
    }

    /// Returns the feature of this name, current or deprecated.
    pub fn find(name: &str) -> Option<Self> {
        let current = Self::ALL.iter().find(|feature| feature.name() == name);
        current.copied().or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, feature)| *feature))
    }
}

/// The set of enabled features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureSet(u64);

const _: () = assert!(Feature::ALL.len() <= u64::BITS as usize);

impl Default for FeatureSet {
    fn default() -> Self {
        let mut set = Self(0);
        for feature in Feature::ALL {
            set.set(*feature, feature.default_enabled());
        }
        set
    }
}

impl FeatureSet {
    pub fn enabled(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u64 != 0
    }

    pub fn set(&mut self, feature: Feature, enabled: bool) {
        let bit = 1 << feature as u64;
        self.0 = if enabled { self.0 | bit } else { self.0 & !bit };
    }

    /// Sets each feature for whose name `state` returns a value. If a feature is named twice, its current name wins.
    pub fn set_named(&mut self, state: impl Fn(&str) -> Option<bool>) {
        let current = Feature::ALL.iter().map(|feature| (feature.name(), *feature));
        for (name, feature) in ALIASES.iter().copied().chain(current) {
            if let Some(enabled) = state(name) {
                self.set(feature, enabled);
            }
        }
    }

    /// Sets the features that a configuration table or a profile names.
    pub(crate) fn set_from(&mut self, table: &Table) {
        self.set_named(|name| TOGGLES.contains(&name).then(|| table.get(name)?.as_bool())?);
        if let Some(features) = table.get("features").and_then(|value| value.as_table()) {
            self.set_named(|name| features.get(name)?.as_bool());
        }
    }

    /// Enables features that an enabled one implies, and disables those whose prerequisite is off.
    pub(crate) fn settle(&mut self) {
        for (feature, implied) in
            [(Feature::EnableFanout, Feature::MultiAgent), (Feature::CodeModeOnly, Feature::CodeMode)]
        {
            if self.enabled(feature) {
                self.set(implied, true);
            }
        }
        if !self.enabled(Feature::JsRepl) {
            self.set(Feature::JsReplToolsOnly, false);
        }
    }
}

/// Features that clients may switch at run time.
pub const SWITCHABLE: [Feature; 5] =
    [Feature::Apps, Feature::Plugins, Feature::ToolSearch, Feature::ToolSuggest, Feature::ToolCallMcpElicitation];

/// The features that clients switched, for the life of the process. Configuration overrides them.
#[derive(Debug, Default)]
pub struct Enablement(Mutex<BTreeMap<String, bool>>);

/// Why a feature cannot be switched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnablementError {
    #[error("unsupported feature enablement `{0}`: currently supported features are {all}", all = SWITCHABLE.map(Feature::name).join(", "))]
    Unsupported(String),
    #[error("invalid feature enablement `{0}`: use canonical feature key `{current}`", current = .1.name())]
    OldName(String, Feature),
    #[error("invalid feature enablement `{0}`")]
    Unknown(String),
}

impl Enablement {
    pub fn get(&self) -> BTreeMap<String, bool> {
        self.0.lock().clone()
    }

    /// Adds to the earlier changes; all or nothing.
    pub fn set(&self, changes: &BTreeMap<String, bool>) -> Result<(), EnablementError> {
        for name in changes.keys() {
            match Feature::find(name) {
                None => return Err(EnablementError::Unknown(name.clone())),
                Some(feature) if feature.name() != name => return Err(EnablementError::OldName(name.clone(), feature)),
                Some(feature) if !SWITCHABLE.contains(&feature) => {
                    return Err(EnablementError::Unsupported(name.clone()));
                }
                Some(_) => {}
            }
        }
        self.switch(changes);
        Ok(())
    }

    /// Adds to the earlier changes. The names are those of features.
    pub fn switch(&self, changes: &BTreeMap<String, bool>) {
        self.0.lock().extend(changes.clone());
    }
}

/// A deprecated name in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeprecatedKey {
    pub alias: &'static str,
    pub feature: Feature,
}

impl DeprecatedKey {
    /// The notice for the user.
    pub fn summary(&self) -> String {
        format!("`[features].{}` is deprecated. Use `[features].{}` instead.", self.alias, self.feature.name())
    }
}

/// Returns the deprecated names in a `[features]` table, sorted.
pub fn deprecated_keys(features: &BTreeMap<String, bool>) -> Vec<DeprecatedKey> {
    let used = ALIASES.iter().filter(|(alias, _)| features.contains_key(*alias));
    used.map(|(alias, feature)| DeprecatedKey { alias, feature: *feature }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which features differ from their default, as `+name` or `-name`.
    fn check(config: &str, expected: &[&str]) {
        let mut set = FeatureSet::default();
        set.set_from(&config.parse().unwrap());
        set.settle();
        let changed: Vec<_> = Feature::ALL
            .iter()
            .filter(|feature| set.enabled(**feature) != feature.default_enabled())
            .map(|feature| format!("{}{}", if set.enabled(*feature) { '+' } else { '-' }, feature.name()))
            .collect();
        assert_eq!(changed, expected, "{config}");
    }

    #[test]
    fn there_are_54_features_with_distinct_names() {
        let names: std::collections::BTreeSet<_> =
            Feature::ALL.iter().map(|f| f.name()).chain(ALIASES.iter().map(|(alias, _)| *alias)).collect();
        assert_eq!((Feature::ALL.len(), names.len()), (54, 54 + ALIASES.len()));
        assert!(ALIASES.is_sorted_by_key(|(alias, _)| *alias));
    }

    #[test]
    fn features_are_found_by_current_and_deprecated_names() {
        assert_eq!(Feature::find("apps"), Some(Feature::Apps));
        assert_eq!(Feature::find("connectors"), Some(Feature::Apps));
        assert_eq!(Feature::find("nope"), None);
    }

    #[test]
    fn a_features_table_sets_features() {
        check("", &[]);
        check("features = { js_repl = true, shell_snapshot = false, nope = true }", &["-shell_snapshot", "+js_repl"]);
        check("features.connectors = false", &["-apps"]);
        check("features = { connectors = false, apps = true }", &[]);
        check("experimental_use_unified_exec_tool = false", &["-unified_exec"]);
        check("experimental_use_unified_exec_tool = false\nfeatures.unified_exec = true", &[]);
    }

    #[test]
    fn implied_features_are_enabled_and_unmet_ones_disabled() {
        check("features = { enable_fanout = true, multi_agent = false }", &["+enable_fanout"]);
        check("features.code_mode_only = true", &["+code_mode", "+code_mode_only"]);
        check("features.js_repl_tools_only = true", &[]);
        check("features = { js_repl_tools_only = true, js_repl = true }", &["+js_repl", "+js_repl_tools_only"]);
    }

    #[test]
    fn deprecated_names_in_use_are_reported() {
        let features = BTreeMap::from([("memory_tool".into(), true), ("apps".into(), true), ("collab".into(), false)]);
        let summaries: Vec<_> = deprecated_keys(&features).iter().map(DeprecatedKey::summary).collect();
        assert_eq!(
            summaries,
            [
                "`[features].collab` is deprecated. Use `[features].multi_agent` instead.",
                "`[features].memory_tool` is deprecated. Use `[features].memories` instead."
            ]
        );
    }

    #[test]
    fn switching_an_unsupported_feature_fails_and_changes_nothing() {
        let enablement = Enablement::default();
        let set = |names: &[&str]| {
            let changes = names.iter().map(|name| ((*name).to_owned(), true)).collect();
            enablement.set(&changes).map_err(|error| error.to_string())
        };
        let supported = "apps, plugins, tool_search, tool_suggest, tool_call_mcp_elicitation";
        assert_eq!(
            set(&["apps", "js_repl"]),
            Err(format!("unsupported feature enablement `js_repl`: currently supported features are {supported}"))
        );
        assert_eq!(
            set(&["connectors"]),
            Err("invalid feature enablement `connectors`: use canonical feature key `apps`".into())
        );
        assert_eq!(set(&["nope"]), Err("invalid feature enablement `nope`".into()));
        assert_eq!(enablement.get(), BTreeMap::new());
        assert_eq!((set(&["apps"]), set(&["plugins"]), set(&[])), (Ok(()), Ok(()), Ok(())));
        assert_eq!(enablement.get().into_keys().collect::<Vec<_>>(), ["apps", "plugins"]);
    }
}

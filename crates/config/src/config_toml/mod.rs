//! `config.toml`, typed: every known key. Unknown keys are ignored here and preserved in their layer. A key that is not
//! set is `None` or empty; `defaults.rs` has the defaults.

mod agents;
mod areas;
mod credentials;
mod defaults;
mod loomd;
mod mcp;
mod opaque;
mod otel;
mod permissions;
mod profile;
mod providers;
mod sandbox;
mod shell;
mod stores;
mod tools;

use std::collections::BTreeMap;

use loomd_protocol::{
    AbsolutePathBuf, AnalyticsConfig, ApprovalsReviewer, AppsConfig, AskForApproval, ForcedLoginMethod, Personality,
    ReasoningEffort, ReasoningSummary, SandboxMode, ServiceTier, Verbosity, WebSearchMode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub use agents::Agents;
pub use areas::{
    BundledSkills, Feedback, History, HistoryPersistence, Memories, PluginSettings, Project, Realtime, RealtimeKind,
    RealtimeVersion, SkillRule, Skills, TrustLevel,
};
pub use loomd::{CommandLimits, Loomd};
pub use mcp::{McpServer, McpTool, McpTransport};
pub use opaque::{AgentRole, Audio, GhostSnapshot, Notice, ToolSuggest, Tui, Windows};
pub use otel::{Otel, OtelExporter, OtelProtocol, OtelTls};
pub use permissions::{FileAccess, FilePermission, NetworkMode, NetworkPermissions, PermissionProfile};
pub use profile::Profile;
pub use providers::{ModelProvider, ProviderAuth, WireApi};
pub use sandbox::WorkspaceWrite;
pub use shell::{Inherit, ShellEnvironmentPolicy};
pub use stores::{CliCredentialsStore, McpCredentialsStore};
pub use tools::Tools;

/// A whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigToml {
    // The model and its provider.
    pub model: Option<String>,
    pub review_model: Option<String>,
    pub model_provider: Option<String>,
    pub model_providers: BTreeMap<String, ModelProvider>,
    pub model_context_window: Option<i64>,
    pub model_auto_compact_token_limit: Option<i64>,
    pub model_reasoning_effort: Option<ReasoningEffort>,
    pub plan_mode_reasoning_effort: Option<ReasoningEffort>,
    pub model_reasoning_summary: Option<ReasoningSummary>,
    pub model_supports_reasoning_summaries: Option<bool>,
    pub model_verbosity: Option<Verbosity>,
    pub model_catalog_json: Option<AbsolutePathBuf>,
    pub service_tier: Option<ServiceTier>,
    pub personality: Option<Personality>,
    pub openai_base_url: Option<String>,
    pub oss_provider: Option<String>,

    // Instructions.
    /// Accepted and ignored.
    pub instructions: Option<String>,
    pub developer_instructions: Option<String>,
    pub model_instructions_file: Option<AbsolutePathBuf>,
    /// Deprecated; its use is reported.
    pub experimental_instructions_file: Option<AbsolutePathBuf>,
    pub compact_prompt: Option<String>,
    pub experimental_compact_prompt_file: Option<AbsolutePathBuf>,
    pub project_doc_max_bytes: Option<usize>,
    pub project_doc_fallback_filenames: Option<Vec<String>>,

    // Approvals and permissions.
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox_mode: Option<SandboxMode>,
    pub sandbox_workspace_write: Option<WorkspaceWrite>,
    pub default_permissions: Option<String>,
    #[serde(serialize_with = "null_when_empty")]
    pub permissions: BTreeMap<String, PermissionProfile>,
    #[serde(serialize_with = "null_when_empty")]
    pub projects: BTreeMap<String, Project>,
    pub project_root_markers: Option<Vec<String>>,

    // Tools, and how commands run.
    pub web_search: Option<WebSearchMode>,
    pub tools: Option<Tools>,
    #[serde(skip_serializing)]
    pub tools_view_image: Option<bool>,
    #[serde(skip_serializing)]
    pub include_apply_patch_tool: Option<bool>,
    pub experimental_use_freeform_apply_patch: Option<bool>,
    pub experimental_use_unified_exec_tool: Option<bool>,
    pub shell_environment_policy: ShellEnvironmentPolicy,
    pub allow_login_shell: Option<bool>,
    pub zsh_path: Option<AbsolutePathBuf>,
    pub js_repl_node_path: Option<AbsolutePathBuf>,
    pub js_repl_node_module_dirs: Option<Vec<AbsolutePathBuf>>,
    pub tool_output_token_limit: Option<usize>,
    pub background_terminal_max_timeout: Option<u64>,
    pub agents: Option<Agents>,
    pub features: BTreeMap<String, bool>,

    // Extensions.
    pub mcp_servers: BTreeMap<String, McpServer>,
    pub mcp_oauth_credentials_store: Option<McpCredentialsStore>,
    pub mcp_oauth_callback_port: Option<u16>,
    pub mcp_oauth_callback_url: Option<String>,
    pub skills: Option<Skills>,
    pub plugins: BTreeMap<String, PluginSettings>,
    pub apps: Option<AppsConfig>,
    pub tool_suggest: Option<ToolSuggest>,
    pub memories: Option<Memories>,
    pub ghost_snapshot: Option<GhostSnapshot>,
    pub notify: Option<Vec<String>>,

    // Accounts.
    pub cli_auth_credentials_store: Option<CliCredentialsStore>,
    pub forced_login_method: Option<ForcedLoginMethod>,
    pub forced_chatgpt_workspace_id: Option<String>,
    pub chatgpt_base_url: Option<String>,

    // The server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loomd: Option<Loomd>,
    pub profile: Option<String>,
    pub profiles: BTreeMap<String, Profile>,
    pub history: Option<History>,
    pub sqlite_home: Option<AbsolutePathBuf>,
    pub log_dir: Option<AbsolutePathBuf>,
    pub analytics: Option<AnalyticsConfig>,
    pub feedback: Option<Feedback>,
    pub otel: Option<Otel>,
    pub hide_agent_reasoning: Option<bool>,
    pub show_raw_agent_reasoning: Option<bool>,
    pub suppress_unstable_features_warning: Option<bool>,

    // Realtime.
    pub realtime: Option<Realtime>,
    pub audio: Option<Audio>,
    pub experimental_realtime_ws_base_url: Option<String>,
    pub experimental_realtime_ws_model: Option<String>,
    pub experimental_realtime_ws_backend_prompt: Option<String>,
    pub experimental_realtime_ws_startup_context: Option<String>,
    pub experimental_realtime_start_instructions: Option<String>,

    // Accepted for other programs that share the file.
    pub check_for_update_on_startup: Option<bool>,
    pub disable_paste_burst: Option<bool>,
    pub file_opener: Option<String>,
    pub commit_attribution: Option<String>,
    pub windows_wsl_setup_acknowledged: Option<bool>,
    pub notice: Option<Notice>,
    pub tui: Option<Tui>,
    pub windows: Option<Windows>,
}

/// Serialises an empty table as `null`, as `config/read` shows a missing one.
fn null_when_empty<T: Serialize, S: Serializer>(map: &BTreeMap<String, T>, serializer: S) -> Result<S::Ok, S::Error> {
    if map.is_empty() { serializer.serialize_none() } else { map.serialize(serializer) }
}

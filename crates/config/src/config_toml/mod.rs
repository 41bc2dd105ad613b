//! `config.toml`, typed: every known key. Unknown keys are ignored here and preserved in their layer. A key that is not
//! set is `None` or empty; `defaults.rs` has the defaults.

mod agents;
mod areas;
mod credentials;
mod defaults;
mod goals;
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
    BundledSkills, Feedback, History, HistoryPersistence, MarketplaceSettings, Memories, PluginSettings, Project,
    Realtime, RealtimeKind, RealtimeVersion, SkillRule, Skills, TrustLevel,
};
pub use goals::Goals;
pub use loomd::{Approvals, BudgetLimits, Budgets, CommandLimits, Loomd, ModelPrice, RecoverTurns};
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
    /// The model of new threads. Default: `gpt-5.3-codex`.
    pub model: Option<String>,
    /// The model of reviews. Default: the model of the thread.
    pub review_model: Option<String>,
    /// The provider of the model: a built-in one, or a key of `model_providers`. Default: `openai`.
    pub model_provider: Option<String>,
    /// Providers beside the built-in ones, by id.
    pub model_providers: BTreeMap<String, ModelProvider>,
    /// The context window of the model in tokens. Default: that of the catalogue.
    pub model_context_window: Option<i64>,
    /// The number of tokens in the context above which the thread is compacted. Default: that of the catalogue.
    pub model_auto_compact_token_limit: Option<i64>,
    /// The reasoning effort. Default: that of the model.
    pub model_reasoning_effort: Option<ReasoningEffort>,
    /// Accepted for other programs that share the file; no effect.
    pub plan_mode_reasoning_effort: Option<ReasoningEffort>,
    /// The summaries of reasoning that are requested. Default: those of the model.
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// `true` sends reasoning parameters also to models that are in no catalogue.
    pub model_supports_reasoning_summaries: Option<bool>,
    /// The length of messages, for models that support it. Default: that of the model.
    pub model_verbosity: Option<Verbosity>,
    /// A file with a catalogue of models, which replaces the built-in one.
    pub model_catalog_json: Option<AbsolutePathBuf>,
    /// The service tier of model calls.
    pub service_tier: Option<ServiceTier>,
    /// The tone of messages, for models with the built-in instructions. Default: `pragmatic`.
    pub personality: Option<Personality>,
    /// The base URL of the provider `openai`. Default: the one of the account.
    pub openai_base_url: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub oss_provider: Option<String>,

    // Instructions.
    /// Accepted for other programs that share the file; no effect.
    pub instructions: Option<String>,
    /// Instructions that are added to the context of every thread.
    pub developer_instructions: Option<String>,
    /// A file with instructions in place of the built-in ones.
    pub model_instructions_file: Option<AbsolutePathBuf>,
    /// Deprecated, no effect; its use is reported. Use `model_instructions_file`.
    pub experimental_instructions_file: Option<AbsolutePathBuf>,
    /// The prompt that asks for the summary of a compaction. Default: a built-in one.
    pub compact_prompt: Option<String>,
    /// A file with the prompt of compactions, unless `compact_prompt` is set.
    pub experimental_compact_prompt_file: Option<AbsolutePathBuf>,
    /// The most bytes of `AGENTS.md` files that are read in all; 0 for none. Default: 32768.
    pub project_doc_max_bytes: Option<usize>,
    /// Names of files that are read in folders without an `AGENTS.md`.
    pub project_doc_fallback_filenames: Option<Vec<String>>,

    // Approvals and permissions.
    /// When approval is requested. Default: `on-request`; `untrusted` in a folder that is marked as untrusted.
    pub approval_policy: Option<AskForApproval>,
    /// The decider of approvals: the user, or a second agent. Default: `user`.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// What commands may change. Default: `workspace-write` in a folder with a `trust_level`, else `read-only`.
    pub sandbox_mode: Option<SandboxMode>,
    /// Additions to the sandbox mode `workspace-write`.
    pub sandbox_workspace_write: Option<WorkspaceWrite>,
    /// The permission profile of commands: a key of `permissions`. Replaces `sandbox_mode`.
    pub default_permissions: Option<String>,
    /// Permission profiles, by name.
    #[serde(serialize_with = "null_when_empty")]
    pub permissions: BTreeMap<String, PermissionProfile>,
    /// Settings of projects, by their absolute path.
    #[serde(serialize_with = "null_when_empty")]
    pub projects: BTreeMap<String, Project>,
    /// Names of entries that mark the root folder of a project. Default: `[".git"]`.
    pub project_root_markers: Option<Vec<String>>,

    // Tools, and how commands run.
    /// Search by the provider. `cached` is live for threads with full access. Default: `cached`.
    pub web_search: Option<WebSearchMode>,
    /// Settings of built-in tools.
    pub tools: Option<Tools>,
    /// Accepted for other programs that share the file; no effect.
    #[serde(skip_serializing)]
    pub tools_view_image: Option<bool>,
    /// Deprecated name of `features.apply_patch_freeform`.
    #[serde(skip_serializing)]
    pub include_apply_patch_tool: Option<bool>,
    /// Deprecated name of `features.apply_patch_freeform`.
    pub experimental_use_freeform_apply_patch: Option<bool>,
    /// Deprecated name of `features.unified_exec`.
    pub experimental_use_unified_exec_tool: Option<bool>,
    /// The environment variables of commands.
    pub shell_environment_policy: ShellEnvironmentPolicy,
    /// Whether the model may run commands in a login shell. Default: `true`.
    pub allow_login_shell: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub zsh_path: Option<AbsolutePathBuf>,
    /// Accepted for other programs that share the file; no effect.
    pub js_repl_node_path: Option<AbsolutePathBuf>,
    /// Accepted for other programs that share the file; no effect.
    pub js_repl_node_module_dirs: Option<Vec<AbsolutePathBuf>>,
    /// The most tokens of a tool's output that the model is sent. Default: that of the model.
    pub tool_output_token_limit: Option<usize>,
    /// The longest wait for output of a background command, in milliseconds. Default: 300000.
    pub background_terminal_max_timeout: Option<u64>,
    /// Limits of child agents.
    pub agents: Option<Agents>,
    /// Limits of goals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
    /// Feature flags, by name.
    pub features: BTreeMap<String, bool>,

    // Extensions.
    /// MCP servers, by name.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The storage of logins to MCP servers. Default: `auto`.
    pub mcp_oauth_credentials_store: Option<McpCredentialsStore>,
    /// The local port that the browser returns to after a login to an MCP server. Default: any free port.
    pub mcp_oauth_callback_port: Option<u16>,
    /// The URL that the browser returns to after a login to an MCP server. Default: the local port.
    pub mcp_oauth_callback_url: Option<String>,
    /// Which skills are enabled.
    pub skills: Option<Skills>,
    /// Installed plugins, by `plugin@marketplace`.
    pub plugins: BTreeMap<String, PluginSettings>,
    /// Marketplaces of plugins that the user added, by name.
    pub marketplaces: BTreeMap<String, MarketplaceSettings>,
    /// Settings of the apps of a ChatGPT account.
    pub apps: Option<AppsConfig>,
    /// Tools that the model may suggest to install.
    pub tool_suggest: Option<ToolSuggest>,
    /// Accepted for other programs that share the file; no effect.
    pub memories: Option<Memories>,
    /// Accepted for other programs that share the file; no effect.
    pub ghost_snapshot: Option<GhostSnapshot>,
    /// A program and its arguments, run after each turn with a JSON object as the last argument.
    pub notify: Option<Vec<String>>,

    // Accounts.
    /// The storage of the account's credentials. Default: `file`.
    pub cli_auth_credentials_store: Option<CliCredentialsStore>,
    /// The only permitted way to sign in.
    pub forced_login_method: Option<ForcedLoginMethod>,
    /// The only ChatGPT workspace that may be signed in to.
    pub forced_chatgpt_workspace_id: Option<String>,
    /// The base URL of ChatGPT. Default: `https://chatgpt.com/backend-api/`.
    pub chatgpt_base_url: Option<String>,

    // The server itself.
    /// Settings of loomd only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loomd: Option<Loomd>,
    /// The profile that is used: a key of `profiles`.
    pub profile: Option<String>,
    /// Sets of values that override the top level, by name.
    pub profiles: BTreeMap<String, Profile>,
    /// Whether the chat keeps its inputs, and how many.
    pub history: Option<History>,
    /// The folder of the index of threads. Default: the home.
    pub sqlite_home: Option<AbsolutePathBuf>,
    /// Accepted for other programs that share the file; no effect.
    pub log_dir: Option<AbsolutePathBuf>,
    /// Whether metrics may be exported; nothing is sent to the maker of a model.
    pub analytics: Option<AnalyticsConfig>,
    /// Reports that clients send with `feedback/upload`; they are stored in the home and not sent.
    pub feedback: Option<Feedback>,
    /// Exporters of spans, log events and metrics. Read when the server starts.
    pub otel: Option<Otel>,
    /// Accepted for other programs that share the file; no effect.
    pub hide_agent_reasoning: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub show_raw_agent_reasoning: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub suppress_unstable_features_warning: Option<bool>,
    /// How long a thread without subscribers and turns stays loaded. Default: 60 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_unload_delay_secs: Option<u64>,

    // Realtime.
    /// Realtime sessions.
    pub realtime: Option<Realtime>,
    /// Accepted for other programs that share the file; no effect.
    pub audio: Option<Audio>,
    /// The base URL of realtime sessions. Default: that of the provider.
    pub experimental_realtime_ws_base_url: Option<String>,
    /// The model of realtime sessions. Default: the one of the provider.
    pub experimental_realtime_ws_model: Option<String>,
    /// The instructions of realtime sessions, in place of the client's prompt.
    pub experimental_realtime_ws_backend_prompt: Option<String>,
    /// The context of realtime sessions; empty for none. Default: a summary of the thread and the folder.
    pub experimental_realtime_ws_startup_context: Option<String>,
    /// What the agent is told when a realtime session starts. Default: a built-in text.
    pub experimental_realtime_start_instructions: Option<String>,

    // Accepted for other programs that share the file.
    /// Accepted for other programs that share the file; no effect.
    pub check_for_update_on_startup: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub disable_paste_burst: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub file_opener: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub commit_attribution: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub windows_wsl_setup_acknowledged: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub notice: Option<Notice>,
    /// Accepted for other programs that share the file; no effect.
    pub tui: Option<Tui>,
    /// Accepted for other programs that share the file; no effect.
    pub windows: Option<Windows>,
}

/// Serialises an empty table as `null`, as `config/read` shows a missing one.
fn null_when_empty<T: Serialize, S: Serializer>(map: &BTreeMap<String, T>, serializer: S) -> Result<S::Ok, S::Error> {
    if map.is_empty() { serializer.serialize_none() } else { map.serialize(serializer) }
}

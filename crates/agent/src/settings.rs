//! The settings of a thread.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_config::permissions::Permissions;
use loomd_mcp::ServerSet;
use loomd_model::{Catalogue, Identity, ModelInfo, Provider, Truncation};
use loomd_protocol::{
    ActivePermissionProfile, ApprovalsReviewer, AskForApproval, Budget, CollaborationMode,
    DeprecationNoticeNotification, DynamicToolSpec, JsonObject, JsonValue, ModeKind, MultiAgentMode, OnDisconnect,
    Personality, ReasoningEffort, ReasoningSummary, SandboxPolicy, ServiceTier, Settings as ModeSettings,
    ThreadSettings, TurnStartParams,
};
use loomd_store::StoredThread;
use loomd_store::rollout::{SandboxPolicy as StoredSandboxPolicy, StoredSettings, TruncationPolicy, TurnContext};

use crate::confinement::{CommandPolicy, Confinement};
use crate::extensions::ThreadExtensions;
use crate::refusal::Refusal;

/// The settings of a thread that a turn may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    /// The rules of a configured permission profile. They are enforced; `sandbox` is the policy that comes closest.
    pub permissions: Option<Arc<Permissions>>,
    /// The permission profile; `None` under a plain sandbox policy.
    pub profile: Option<ActivePermissionProfile>,
    pub reasoning_effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub personality: Option<Personality>,
    pub mode: ModeKind,
    /// Replaces the built-in instructions of the mode.
    pub mode_instructions: Option<String>,
}

impl Settings {
    /// Applies the overrides of a turn, for it and all later ones. `cwd` is absolute, and `chosen` what the permission
    /// profile of the params stands for.
    pub(crate) fn change(&mut self, params: &TurnStartParams, chosen: Option<CommandPolicy>) {
        fn set<T: Clone>(value: &mut T, new: &Option<T>) {
            if let Some(new) = new {
                value.clone_from(new);
            }
        }
        fn set_some<T: Clone>(value: &mut Option<T>, new: &Option<T>) {
            if new.is_some() {
                value.clone_from(new);
            }
        }
        set(&mut self.cwd, &params.cwd);
        if params.sandbox_policy.as_ref().is_some_and(|policy| *policy != self.sandbox) {
            (self.permissions, self.profile) = (None, None);
        }
        set(&mut self.approval_policy, &params.approval_policy);
        set(&mut self.approvals_reviewer, &params.approvals_reviewer);
        set(&mut self.sandbox, &params.sandbox_policy);
        if let Some(CommandPolicy { policy, permissions, profile }) = chosen {
            (self.sandbox, self.permissions, self.profile) = (policy, permissions, profile);
        }
        set(&mut self.model, &params.model);
        set(&mut self.service_tier, &params.service_tier);
        set_some(&mut self.reasoning_effort, &params.effort);
        set_some(&mut self.summary, &params.summary);
        set_some(&mut self.personality, &params.personality);
        if let Some(CollaborationMode { mode, settings }) = &params.collaboration_mode {
            self.mode = *mode;
            self.model.clone_from(&settings.model);
            self.reasoning_effort.clone_from(&settings.reasoning_effort);
            self.mode_instructions.clone_from(&settings.developer_instructions);
        }
    }

    /// Returns the rules that hold for commands.
    pub(crate) fn confinement<'a>(&'a self, profile: &'a Profile) -> Confinement<'a> {
        Confinement { policy: &self.sandbox, permissions: self.permissions.as_deref(), config: &profile.config }
    }

    /// The settings as clients see them.
    pub fn to_wire(&self) -> ThreadSettings {
        ThreadSettings {
            cwd: self.cwd.clone(),
            approval_policy: self.approval_policy.clone(),
            approvals_reviewer: self.approvals_reviewer,
            sandbox_policy: self.sandbox.clone(),
            active_permission_profile: self.profile.clone(),
            model: self.model.clone(),
            model_provider: self.model_provider.clone(),
            service_tier: self.service_tier.clone(),
            effort: self.reasoning_effort.clone(),
            summary: self.summary,
            collaboration_mode: self.collaboration_mode(),
            multi_agent_mode: MultiAgentMode::default(),
            personality: self.personality,
            disabled_plugin_ids: Vec::new(),
        }
    }

    /// The settings as the rollout has them.
    pub(crate) fn to_stored(&self) -> StoredSettings {
        StoredSettings {
            cwd: self.cwd.clone(),
            approval_policy: self.approval_policy.clone(),
            approvals_reviewer: Some(self.approvals_reviewer),
            sandbox_policy: Some(self.sandbox.clone().into()),
            active_permission_profile: self.profile.clone(),
            model: self.model.clone(),
            model_provider: Some(self.model_provider.clone()),
            service_tier: self.service_tier.clone(),
            effort: self.reasoning_effort.clone(),
            summary: self.summary,
            collaboration_mode: Some(self.collaboration_mode()),
            personality: self.personality,
        }
    }

    pub fn collaboration_mode(&self) -> CollaborationMode {
        CollaborationMode {
            mode: self.mode,
            settings: ModeSettings {
                model: self.model.clone(),
                reasoning_effort: self.reasoning_effort.clone(),
                developer_instructions: self.mode_instructions.clone(),
            },
        }
    }
}

/// The settings that stay the same while a thread is loaded.
#[derive(Debug)]
pub struct Profile {
    pub config: loomd_config::Settings,
    pub provider: Arc<Provider>,
    pub catalogue: Arc<Catalogue>,
    /// Replaces the model's instructions.
    pub base_instructions: Option<String>,
    pub developer_instructions: Option<String>,
    pub dynamic_tools: Vec<DynamicToolSpec>,
    /// The MCP servers at the time when the thread was opened.
    pub mcp_servers: ServerSet,
    /// The values of the configuration that the client stated for the thread.
    pub thread_config: JsonObject,
    /// Whether items of the conversation are also published as raw events.
    pub raw_events: bool,
    /// The configuration folders whose rules and hooks apply, lowest precedence first.
    pub config_folders: Vec<PathBuf>,
    pub extensions: ThreadExtensions,
    /// The name of the client that opened the thread.
    pub client: String,
    /// The tools are those of the newer release, with goals and namespaces of agents and MCP servers.
    pub newer_tools: bool,
    /// Whether the thread has a machine to run commands and to change files on.
    pub has_environment: bool,
    /// Whether this client answers elicitations of the mode `openai/form`.
    pub openai_form: bool,
    /// The identity in the headers of model calls.
    pub identity: Identity,
}

impl Profile {
    /// Whether the tools are those of the newer release.
    pub(crate) fn has_newer_tools(&self) -> bool {
        self.newer_tools
    }

    /// The catalogue entry of a model, with the overrides of the configuration.
    pub(crate) fn model(&self, name: &str) -> ModelInfo {
        let mut info = self.catalogue.find(name);
        let config = &self.config.config;
        info.context_window = config.model_context_window.unwrap_or(info.context_window);
        info.auto_compact_token_limit = config.model_auto_compact_token_limit.or(info.auto_compact_token_limit);
        if let Some(limit) = config.tool_output_token_limit {
            info.truncation = Truncation::Tokens(limit);
        }
        if config.model_supports_reasoning_summaries == Some(true) {
            info.supports_reasoning_summaries = true;
        }
        info
    }
}

/// The name of the sandbox for providers and MCP servers.
pub(crate) fn sandbox_name(policy: &SandboxPolicy) -> &'static str {
    match policy {
        SandboxPolicy::DangerFullAccess => "none",
        SandboxPolicy::ExternalSandbox { .. } => "external",
        _ if cfg!(target_os = "macos") => "seatbelt",
        _ => "seccomp",
    }
}

/// What an MCP server that asks for it is told of the sandbox of commands. The policy is spelt as in rollouts.
pub(crate) fn sandbox_state(settings: &Settings) -> JsonValue {
    serde_json::json!({
        "sandboxPolicy": StoredSandboxPolicy::from(settings.sandbox.clone()),
        "codexLinuxSandboxExe": null,
        "sandboxCwd": settings.cwd,
        "useLegacyLandlock": false,
    })
}

/// The limit of a tool's output for the model, as rollouts spell it.
pub(crate) fn truncation(info: &ModelInfo) -> TruncationPolicy {
    match info.truncation {
        Truncation::Bytes(limit) => TruncationPolicy::Bytes(limit as u64),
        Truncation::Tokens(limit) => TruncationPolicy::Tokens(limit as u64),
    }
}

/// The stored thread whose settings are resolved.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    pub thread: &'a StoredThread,
    /// The settings of its last turn.
    pub last_turn: Option<&'a TurnContext>,
    /// The settings that were last changed.
    pub changed: Option<&'a StoredSettings>,
}

/// Resolved settings, and fields of a new thread's `session_meta`.
#[derive(Clone, Debug)]
pub struct ResolvedSettings {
    pub settings: Settings,
    pub profile: Arc<Profile>,
    /// The name and version of the client that starts the thread.
    pub originator: String,
    pub cli_version: String,
    /// The label that its client gave it.
    pub thread_source: Option<String>,
    /// What a new thread may spend.
    pub budget: Option<Budget>,
    /// Labels that a node must have to run the thread.
    pub placement: Vec<String>,
    /// What a running turn does when the last client is disconnected.
    pub on_disconnect: OnDisconnect,
    /// Notices about the configuration, published after `thread/started`.
    pub notices: Vec<DeprecationNoticeNotification>,
}

/// Resolves the settings of a thread; the argument is `None` for a new one.
pub type Resolve = Box<dyn FnOnce(Option<Basis<'_>>) -> Result<ResolvedSettings, Refusal> + Send>;

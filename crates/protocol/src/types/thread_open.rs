//! Opening a thread: `thread/start`, `thread/resume`, `thread/fork`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ActivePermissionProfile, ApprovalsReviewer, AskForApproval, Budget, CollaborationMode, DynamicToolSpec, JsonObject,
    JsonValue, MultiAgentMode, OnDisconnect, Personality, ReasoningEffort, ResponseItem, SandboxPolicy, SandboxSetting,
    ServiceTier, Thread, ThreadHistoryMode, ThreadResumeInitialTurnsPageParams, ThreadTurnsListResponse,
};

/// Params of `thread/start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Option<ServiceTier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, deserialize_with = "super::spelling::approval_policy", skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<JsonObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<Personality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock_experimental_field: Option<String>,
    /// The id of a permission profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_mode: Option<ThreadHistoryMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_workspace_roots: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_agent_mode: Option<MultiAgentMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_capability_roots: Option<Vec<JsonValue>>,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub allow_provider_model_fallback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daybreak_enabled: Option<bool>,
    /// A label of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_source: Option<String>,
    /// The project that the thread belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// What the thread may spend, with its child agents, as long as it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Labels of nodes: the thread is started, and taken over, only by a node that has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<String>,
    #[serde(default)]
    pub experimental_raw_events: bool,
    #[serde(default)]
    pub persist_extended_history: bool,
    /// What a running turn does when the last client is disconnected. Default: it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// A request with the key and the body of an earlier one gets its answer, and does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Params of `thread/resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<ResponseItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Option<ServiceTier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, deserialize_with = "super::spelling::approval_policy", skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<JsonObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<Personality>,
    /// Newer clients read the turns in pages instead.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub exclude_turns: bool,
    #[serde(default)]
    pub persist_extended_history: bool,
    /// The id of a permission profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// Asks for a page of turns in the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_turns_page: Option<ThreadResumeInitialTurnsPageParams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// The last event of the thread that the client has. The events after it are sent again, if they are still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_event: Option<String>,
    /// What a running turn does when the last client is disconnected. Default: it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
}

/// Params of `thread/fork`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Option<ServiceTier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, deserialize_with = "super::spelling::approval_policy", skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<JsonObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub ephemeral: bool,
    /// Newer clients read the turns in pages instead.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub exclude_turns: bool,
    #[serde(default)]
    pub persist_extended_history: bool,
    /// The fork takes the goal along, which continues after the fork's first turn.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub defer_goal_continuation: bool,
    /// Whether the fork is listed as attached to its source.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub attach_to_source: bool,
    /// The id of a permission profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// The last turn that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn_id: Option<String>,
    /// The first turn that is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// A label of the new thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_source: Option<String>,
    /// A request with the key and the body of an earlier one gets its answer, and does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// A place where commands are to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnvironmentParams {
    pub environment_id: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_workspace_roots: Option<Vec<String>>,
}

/// Result of `thread/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartResponse {
    pub thread: Thread,
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The instruction files in force: of the home, then from the root of the project down.
    #[serde(default)]
    pub instruction_sources: Vec<String>,
    #[serde(default)]
    pub runtime_workspace_roots: Vec<String>,
    #[serde(default)]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    #[serde(default)]
    pub multi_agent_mode: MultiAgentMode,
    #[serde(default)]
    pub disabled_plugin_ids: Vec<String>,
}

/// What became of the events that a client has missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadReplay {
    /// Each of them follows the answer, in order.
    Complete,
    /// They are not known any more; the answer shows the thread instead.
    Reset,
}

/// Why missed events are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadReplayReason {
    /// The thread was not loaded since: the server was restarted, or has unloaded it.
    NotLoaded,
    /// Too much has happened since.
    TooOld,
    /// The event is none of this thread.
    UnknownEvent,
}

/// Result of `thread/resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeResponse {
    pub thread: Thread,
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The instruction files in force: of the home, then from the root of the project down.
    #[serde(default)]
    pub instruction_sources: Vec<String>,
    #[serde(default)]
    pub runtime_workspace_roots: Vec<String>,
    #[serde(default)]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    #[serde(default)]
    pub multi_agent_mode: MultiAgentMode,
    #[serde(default)]
    pub disabled_plugin_ids: Vec<String>,
    #[serde(default)]
    pub collaboration_mode: Option<CollaborationMode>,
    #[serde(default)]
    pub initial_turns_page: Option<ThreadTurnsListResponse>,
    /// Pages backwards from the newest turn.
    #[serde(default)]
    pub turns_backwards_cursor: Option<String>,
    /// Pages backwards from the newest item.
    #[serde(default)]
    pub items_backwards_cursor: Option<String>,
    /// The event right after which the thread is as this answer shows it. For clients that announced `eventIds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// What became of `afterEvent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ThreadReplay>,
    /// Why the events after `afterEvent` are not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_reason: Option<ThreadReplayReason>,
    /// The items of the running turn that have not completed. Only for clients with the capability `eventIds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_item_ids: Vec<String>,
}

/// Result of `thread/fork`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkResponse {
    pub thread: Thread,
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The instruction files in force: of the home, then from the root of the project down.
    #[serde(default)]
    pub instruction_sources: Vec<String>,
    #[serde(default)]
    pub runtime_workspace_roots: Vec<String>,
    #[serde(default)]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    #[serde(default)]
    pub multi_agent_mode: MultiAgentMode,
    #[serde(default)]
    pub disabled_plugin_ids: Vec<String>,
}

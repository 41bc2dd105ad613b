//! Turns: start, steer, interrupt, and the notifications about them.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    ApprovalsReviewer, AskForApproval, Budget, CollaborationMode, FunctionCallOutputBody, JsonObject, JsonValue, Level,
    MultiAgentMode, Personality, ReasoningEffort, ReasoningSummary, SandboxPolicy, ServiceTier, ThreadItem,
    TokenUsageBreakdown, TurnEnvironmentParams, TurnItemsView,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByteRange {
    pub start: usize,
    pub end: usize,
}

/// A span of text that the client renders specially.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextElement {
    pub byte_range: ByteRange,
    pub placeholder: Option<String>,
}

/// One part of the user's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum UserInput {
    Text {
        text: String,
        #[serde(default)]
        text_elements: Vec<TextElement>,
    },
    Image {
        url: String,
    },
    LocalImage {
        path: String,
    },
    /// Only newer clients send audio.
    Audio {
        url: String,
    },
    LocalAudio {
        path: String,
    },
    Skill {
        name: String,
        path: String,
    },
    Mention {
        name: String,
        path: String,
    },
}

/// The output of a tool that the client ran by itself, with which a turn begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnToolOutput {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub output: FunctionCallOutputBody,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub retain: bool,
}

/// Whether a piece of context comes from the client's own application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AdditionalContextKind {
    Untrusted,
    Application,
}

/// A piece of context that the model is sent before the user's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdditionalContextEntry {
    pub kind: AdditionalContextKind,
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Params of `turn/start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartParams {
    pub thread_id: String,
    pub input: Vec<UserInput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, deserialize_with = "super::spelling::approval_policy", skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<AskForApproval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    #[serde(default, deserialize_with = "super::spelling::sandbox_policy", skip_serializing_if = "Option::is_none")]
    pub sandbox_policy: Option<SandboxPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Option<ServiceTier>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReasoningSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<Personality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collaboration_mode: Option<CollaborationMode>,
    /// Why the turn starts, for the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_trigger: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_turn_id: Option<String>,
    /// For the calls of this turn only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier_for_turn: Option<ServiceTier>,
    /// Instead of input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_output: Option<TurnToolOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// Further pairs for the provider, for this turn only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    /// The id of a permission profile, for this turn and all later ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// The client's own id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_user_message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_workspace_roots: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_agent_mode: Option<MultiAgentMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_plugin_ids: Option<Vec<String>>,
    /// What the turn may spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Params of `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerParams {
    pub thread_id: String,
    pub input: Vec<UserInput>,
    pub expected_turn_id: String,
    /// The client's own id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_user_message_id: Option<String>,
}

/// Params of `turn/interrupt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnInterruptParams {
    pub thread_id: String,
    pub turn_id: String,
}

/// The kind of an error, for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[schemars(transform = exclusive)]
pub enum CodexErrorInfo {
    ContextWindowExceeded,
    UsageLimitExceeded,
    ServerOverloaded,
    HttpConnectionFailed {
        http_status_code: Option<u16>,
    },
    ResponseStreamConnectionFailed {
        http_status_code: Option<u16>,
    },
    InternalServerError,
    Unauthorized,
    BadRequest,
    ThreadRollbackFailed,
    SandboxError,
    ResponseStreamDisconnected {
        http_status_code: Option<u16>,
    },
    ResponseTooManyFailedAttempts {
        http_status_code: Option<u16>,
    },
    ActiveTurnNotSteerable {
        turn_kind: NonSteerableTurnKind,
    },
    RateLimitExceeded,
    SessionBudgetExceeded,
    ModelNotFound,
    CyberPolicy,
    MisalignmentPolicyViolation,
    PolicyCapacityUnavailable,
    FlexUnavailable,
    Other,
    /// A kind that this release does not know, as received.
    #[serde(untagged)]
    #[schemars(skip)]
    Unknown(JsonValue),
}

/// Serialises the kind of an error for the level of the client: kinds that its release lacks as the nearest that it has.
fn for_level<S: Serializer>(info: &Option<CodexErrorInfo>, serializer: S) -> Result<S::Ok, S::Error> {
    use CodexErrorInfo::*;
    if Level::encoding() != Some(Level::V0_118) {
        return info.serialize(serializer);
    }
    let known = match info {
        Some(RateLimitExceeded) => Some(ResponseStreamDisconnected { http_status_code: None }),
        Some(PolicyCapacityUnavailable | FlexUnavailable) => Some(ServerOverloaded),
        Some(ModelNotFound | CyberPolicy | MisalignmentPolicyViolation) => Some(BadRequest),
        Some(SessionBudgetExceeded) => Some(UsageLimitExceeded),
        known => return known.serialize(serializer),
    };
    known.serialize(serializer)
}

/// The schema lists the known kinds, of which a value has one.
fn exclusive(schema: &mut Schema) {
    let members = std::mem::take(schema.ensure_object());
    let renamed = |(name, value): (String, JsonValue)| (if name == "anyOf" { "oneOf".to_owned() } else { name }, value);
    *schema = Schema::from(members.into_iter().map(renamed).collect::<JsonObject>());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NonSteerableTurnKind {
    Review,
    Compact,
}

/// One turn: the user's input and everything that the agent did in response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: String,
    #[serde(serialize_with = "items_of_level")]
    pub items: Vec<ThreadItem>,
    pub status: TurnStatus,
    pub error: Option<TurnError>,
    /// Which of its items are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_view: Option<TurnItemsView>,
    /// In Unix seconds; null where it was not recorded.
    #[serde(default)]
    pub started_at: Option<i64>,
    #[serde(default)]
    pub completed_at: Option<i64>,
    #[serde(default)]
    pub duration_ms: Option<i64>,
    #[serde(default)]
    pub root_turn_id: Option<String>,
}

/// Leaves out items that the release of the client lacks.
fn items_of_level<S: Serializer>(items: &[ThreadItem], serializer: S) -> Result<S::Ok, S::Error> {
    match Level::encoding() {
        Some(level) => serializer.collect_seq(items.iter().filter(|item| level.has_item(item))),
        None => items.serialize(serializer),
    }
}

/// Why a turn failed, or an error within it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    pub message: String,
    #[serde(serialize_with = "for_level")]
    pub codex_error_info: Option<CodexErrorInfo>,
    pub additional_details: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    Completed,
    Interrupted,
    Failed,
    #[default]
    InProgress,
}

/// Result of `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStartResponse {
    pub turn: Turn,
}

/// Result of `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerResponse {
    pub turn_id: String,
}

/// Result of `turn/interrupt`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnInterruptResponse {}

/// Params of the `error` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorNotification {
    pub error: TurnError,
    pub will_retry: bool,
    pub thread_id: String,
    pub turn_id: String,
}

/// Params of the `turn/started` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartedNotification {
    pub thread_id: String,
    pub turn: Turn,
}

/// Params of the `turn/completed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompletedNotification {
    pub thread_id: String,
    /// Newer clients get the last message of the agent with it.
    #[serde(serialize_with = "without_items_when_older")]
    pub turn: Turn,
    /// The tokens of all model calls of the turn; `None` when no provider reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsageBreakdown>,
}

/// Release 0.118.0 ends a turn without items.
fn without_items_when_older<S: Serializer>(turn: &Turn, serializer: S) -> Result<S::Ok, S::Error> {
    match Level::encoding() {
        Some(Level::V0_118) if !turn.items.is_empty() => {
            Turn { items: Vec::new(), items_view: None, ..turn.clone() }.serialize(serializer)
        }
        _ => turn.serialize(serializer),
    }
}

/// Params of the `turn/diff/updated` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffUpdatedNotification {
    pub thread_id: String,
    pub turn_id: String,
    pub diff: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnPlanStep {
    pub step: String,
    pub status: TurnPlanStepStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnPlanStepStatus {
    Pending,
    InProgress,
    Completed,
}

/// Params of the `turn/plan/updated` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanUpdatedNotification {
    pub thread_id: String,
    pub turn_id: String,
    pub explanation: Option<String>,
    pub plan: Vec<TurnPlanStep>,
}

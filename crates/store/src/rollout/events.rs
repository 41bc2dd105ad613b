//! The events that every rollout holds. `item_id`, where there is one, is ours: it keeps the id that was
//! streamed to clients, and other readers ignore it.

use loomd_protocol::{self as wire, JsonValue, MessagePhase, ReviewTarget};
use serde::{Deserialize, Serialize};

/// Payload of `task_started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
    pub turn_id: String,
    #[serde(default)]
    pub model_context_window: Option<i64>,
    #[serde(default = "default_mode")]
    pub collaboration_mode_kind: String,
    /// In Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub started_at: Option<i64>,
}

fn default_mode() -> String {
    "default".into()
}

/// Payload of `task_complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskComplete {
    pub turn_id: String,
    #[serde(default)]
    pub last_agent_message: Option<String>,
    #[serde(flatten)]
    pub times: TurnTimes,
}

/// When a turn ran, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTimes {
    /// In Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub started_at: Option<i64>,
    /// In Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub completed_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub duration_ms: Option<i64>,
}

/// Payload of `turn_aborted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnAborted {
    #[serde(default)]
    pub turn_id: Option<String>,
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub reason: AbortReason,
    #[serde(flatten)]
    pub times: TurnTimes,
}

/// Why a turn was cut short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    #[default]
    Interrupted,
    Replaced,
    ReviewEnded,
}

/// Payload of `user_message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    pub message: String,
    /// Addresses of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    /// Paths of images.
    #[serde(default)]
    pub local_images: Vec<String>,
    #[serde(default)]
    pub text_elements: Vec<TextElement>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
    /// The client's own id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub client_id: Option<String>,
}

impl UserMessage {
    /// Whether it carries an image of either sort.
    pub fn has_image(&self) -> bool {
        self.images.as_ref().is_some_and(|images| !images.is_empty()) || !self.local_images.is_empty()
    }
}

/// A part of a message's text that stands for something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextElement {
    pub byte_range: ByteRange,
    #[serde(default)]
    pub placeholder: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: u64,
    pub end: u64,
}

/// Payload of `agent_message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMessage {
    pub message: String,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub phase: Option<MessagePhase>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub memory_citation: Option<MemoryCitation>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// Which memories a message rests on. The wire's `threadIds` are the file's `rolloutIds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCitation {
    pub entries: Vec<wire::MemoryCitationEntry>,
    pub rollout_ids: Vec<String>,
}

impl From<MemoryCitation> for wire::MemoryCitation {
    fn from(citation: MemoryCitation) -> Self {
        Self { entries: citation.entries, thread_ids: citation.rollout_ids }
    }
}

impl From<wire::MemoryCitation> for MemoryCitation {
    fn from(citation: wire::MemoryCitation) -> Self {
        Self { entries: citation.entries, rollout_ids: citation.thread_ids }
    }
}

/// Payload of `agent_reasoning`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReasoning {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// Payload of `agent_reasoning_raw_content`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReasoningRawContent {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// Payload of `token_count`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenCount {
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub info: Option<TokenUsageInfo>,
    #[serde(default)]
    pub rate_limits: Option<JsonValue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsageInfo {
    pub total_token_usage: TokenUsage,
    pub last_token_usage: TokenUsage,
    #[serde(default)]
    pub model_context_window: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_input_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_output_tokens: i64,
    pub total_tokens: i64,
}

fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// Payload of `thread_settings_applied`: all settings of the thread, from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadSettingsApplied {
    pub thread_id: String,
    pub thread_settings: StoredSettings,
}

/// The settings of a thread, as the file spells them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSettings {
    pub cwd: String,
    pub approval_policy: wire::AskForApproval,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub approvals_reviewer: Option<wire::ApprovalsReviewer>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub sandbox_policy: Option<super::SandboxPolicy>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub active_permission_profile: Option<wire::ActivePermissionProfile>,
    pub model: String,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub model_provider: Option<String>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub service_tier: Option<wire::ServiceTier>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub effort: Option<wire::ReasoningEffort>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub summary: Option<wire::ReasoningSummary>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub collaboration_mode: Option<wire::CollaborationMode>,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub personality: Option<wire::Personality>,
}

/// Payload of `context_compacted`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextCompacted {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// Payload of `entered_review_mode`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnteredReviewMode {
    pub target: ReviewTarget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_facing_hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// Payload of `exited_review_mode`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExitedReviewMode {
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub review_output: Option<ReviewOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub item_id: Option<String>,
}

/// What a reviewer found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReviewOutput {
    #[serde(default)]
    pub findings: Vec<ReviewFinding>,
    #[serde(default)]
    pub overall_correctness: String,
    #[serde(default)]
    pub overall_explanation: String,
    #[serde(default)]
    pub overall_confidence_score: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewFinding {
    pub title: String,
    pub body: String,
    pub confidence_score: f64,
    pub priority: i32,
    pub code_location: CodeLocation,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeLocation {
    pub absolute_file_path: String,
    pub line_range: LineRange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub start: u32,
    pub end: u32,
}

/// Payload of `thread_rolled_back`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRolledBack {
    pub num_turns: u32,
}

/// Payload of `undo_completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoCompleted {
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Payload of `image_generation_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageGenerationEnd {
    pub call_id: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised_prompt: Option<String>,
    pub result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_path: Option<String>,
}

/// Payload of `item_completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemCompleted {
    #[serde(default)]
    pub thread_id: String,
    pub turn_id: String,
    pub item: CompletedItem,
}

/// The items that have no event of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletedItem {
    Plan {
        id: String,
        text: String,
    },
    FunctionCallOutput {
        id: String,
        name: String,
        #[serde(default)]
        namespace: Option<String>,
        output: wire::FunctionCallOutputBody,
    },
    SubAgentActivity {
        id: String,
        kind: wire::SubAgentActivityKind,
        agent_thread_id: String,
        agent_path: String,
        #[serde(default)]
        model: Option<String>,
        #[serde(default)]
        reasoning_effort: Option<wire::ReasoningEffort>,
    },
}

/// Payload of `thread_goal_updated`: a copy of the goal that a client set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalUpdated {
    pub thread_id: String,
    pub goal: wire::ThreadGoal,
}

//! The events of extended history: what tools did, and errors. Readers that do not know them skip them.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_protocol::{
    self as wire, DynamicToolCallOutputContentItem, JsonObject, JsonValue, ReasoningEffort, ResponsesApiWebSearchAction,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Payload of `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    pub message: String,
    #[serde(default, deserialize_with = "super::lenient::or_none")]
    pub codex_error_info: Option<ErrorInfo>,
}

/// The cause of an error, as the file spells it. The wire's `codexErrorInfo` is the same in camelCase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorInfo {
    ContextWindowExceeded,
    UsageLimitExceeded,
    ServerOverloaded,
    HttpConnectionFailed { http_status_code: Option<u16> },
    ResponseStreamConnectionFailed { http_status_code: Option<u16> },
    InternalServerError,
    Unauthorized,
    BadRequest,
    ThreadRollbackFailed,
    SandboxError,
    ResponseStreamDisconnected { http_status_code: Option<u16> },
    ResponseTooManyFailedAttempts { http_status_code: Option<u16> },
    ActiveTurnNotSteerable { turn_kind: wire::NonSteerableTurnKind },
    RateLimitExceeded,
    SessionBudgetExceeded,
    ModelNotFound,
    CyberPolicy,
    MisalignmentPolicyViolation,
    PolicyCapacityUnavailable,
    FlexUnavailable,
    Other,
}

macro_rules! same_error_info {
    ($from:ty => $to:ident $(, $unknown:ident is other)?) => {
        impl From<$from> for $to {
            fn from(info: $from) -> Self {
                type Info = $from;
                match info {
                    Info::ContextWindowExceeded => Self::ContextWindowExceeded,
                    Info::UsageLimitExceeded => Self::UsageLimitExceeded,
                    Info::ServerOverloaded => Self::ServerOverloaded,
                    Info::HttpConnectionFailed { http_status_code } => Self::HttpConnectionFailed { http_status_code },
                    Info::ResponseStreamConnectionFailed { http_status_code } => {
                        Self::ResponseStreamConnectionFailed { http_status_code }
                    }
                    Info::InternalServerError => Self::InternalServerError,
                    Info::Unauthorized => Self::Unauthorized,
                    Info::BadRequest => Self::BadRequest,
                    Info::ThreadRollbackFailed => Self::ThreadRollbackFailed,
                    Info::SandboxError => Self::SandboxError,
                    Info::ResponseStreamDisconnected { http_status_code } => {
                        Self::ResponseStreamDisconnected { http_status_code }
                    }
                    Info::ResponseTooManyFailedAttempts { http_status_code } => {
                        Self::ResponseTooManyFailedAttempts { http_status_code }
                    }
                    Info::ActiveTurnNotSteerable { turn_kind } => Self::ActiveTurnNotSteerable { turn_kind },
                    Info::RateLimitExceeded => Self::RateLimitExceeded,
                    Info::SessionBudgetExceeded => Self::SessionBudgetExceeded,
                    Info::ModelNotFound => Self::ModelNotFound,
                    Info::CyberPolicy => Self::CyberPolicy,
                    Info::MisalignmentPolicyViolation => Self::MisalignmentPolicyViolation,
                    Info::PolicyCapacityUnavailable => Self::PolicyCapacityUnavailable,
                    Info::FlexUnavailable => Self::FlexUnavailable,
                    Info::Other => Self::Other,
                    $(Info::$unknown(_) => Self::Other,)?
                }
            }
        }
    };
}

use wire::CodexErrorInfo;
same_error_info!(ErrorInfo => CodexErrorInfo);
same_error_info!(CodexErrorInfo => ErrorInfo, Unknown is other);

/// A reviewer's verdict on a request; kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuardianAssessment {
    // Keeps the tag out of `fields`.
    #[serde(rename = "type", default, skip_serializing)]
    tag: IgnoredType,
    #[serde(flatten)]
    pub fields: JsonObject,
}

#[derive(Clone, Copy, Debug, Default)]
struct IgnoredType;

impl PartialEq for IgnoredType {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<'de> Deserialize<'de> for IgnoredType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl From<JsonObject> for GuardianAssessment {
    fn from(mut fields: JsonObject) -> Self {
        fields.shift_remove("type");
        Self { tag: IgnoredType, fields }
    }
}

/// Payload of `web_search_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebSearchEnd {
    pub call_id: String,
    pub query: String,
    /// The reference drops the line when it is missing.
    #[serde(default = "other_action", deserialize_with = "action_or_other")]
    pub action: ResponsesApiWebSearchAction,
}

fn other_action() -> ResponsesApiWebSearchAction {
    ResponsesApiWebSearchAction::Other
}

fn action_or_other<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ResponsesApiWebSearchAction, D::Error> {
    Ok(super::lenient::or_none(deserializer)?.unwrap_or_else(other_action))
}

/// Payload of `exec_command_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecCommandEnd {
    pub call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    #[serde(default)]
    pub turn_id: String,
    pub command: Vec<String>,
    pub cwd: String,
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub parsed_cmd: Vec<ParsedCommand>,
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub source: ExecCommandSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_input: Option<String>,
    #[serde(default)]
    pub stdout: String,
    #[serde(default)]
    pub stderr: String,
    #[serde(default)]
    pub aggregated_output: String,
    pub exit_code: i32,
    pub duration: Duration,
    #[serde(default)]
    pub formatted_output: String,
    pub status: EndStatus,
}

/// What a command does, as far as its text shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ParsedCommand {
    Read { cmd: String, name: String, path: String },
    ListFiles { cmd: String, path: Option<String> },
    Search { cmd: String, query: Option<String>, path: Option<String> },
    Unknown { cmd: String },
}

impl From<ParsedCommand> for wire::CommandAction {
    fn from(parsed: ParsedCommand) -> Self {
        match parsed {
            ParsedCommand::Read { cmd, name, path } => Self::Read { command: cmd, name, path },
            ParsedCommand::ListFiles { cmd, path } => Self::ListFiles { command: cmd, path },
            ParsedCommand::Search { cmd, query, path } => Self::Search { command: cmd, query, path },
            ParsedCommand::Unknown { cmd } => Self::Unknown { command: cmd },
        }
    }
}

impl From<wire::CommandAction> for ParsedCommand {
    fn from(action: wire::CommandAction) -> Self {
        use wire::CommandAction::*;
        match action {
            Read { command, name, path } => Self::Read { cmd: command, name, path },
            ListFiles { command, path } => Self::ListFiles { cmd: command, path },
            Search { command, query, path } => Self::Search { cmd: command, query, path },
            Unknown { command } => Self::Unknown { cmd: command },
        }
    }
}

/// Whether the model or the user ran a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecCommandSource {
    #[default]
    Agent,
    UserShell,
    UnifiedExecStartup,
    UnifiedExecInteraction,
}

impl From<ExecCommandSource> for wire::CommandExecutionSource {
    fn from(source: ExecCommandSource) -> Self {
        match source {
            ExecCommandSource::Agent => Self::Agent,
            ExecCommandSource::UserShell => Self::UserShell,
            ExecCommandSource::UnifiedExecStartup => Self::UnifiedExecStartup,
            ExecCommandSource::UnifiedExecInteraction => Self::UnifiedExecInteraction,
        }
    }
}

impl From<wire::CommandExecutionSource> for ExecCommandSource {
    fn from(source: wire::CommandExecutionSource) -> Self {
        match source {
            wire::CommandExecutionSource::Agent => Self::Agent,
            wire::CommandExecutionSource::UserShell => Self::UserShell,
            wire::CommandExecutionSource::UnifiedExecStartup => Self::UnifiedExecStartup,
            wire::CommandExecutionSource::UnifiedExecInteraction => Self::UnifiedExecInteraction,
        }
    }
}

/// How a command or a patch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    Completed,
    Failed,
    Declined,
}

/// Payload of `patch_apply_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchApplyEnd {
    pub call_id: String,
    #[serde(default)]
    pub turn_id: String,
    #[serde(default)]
    pub stdout: String,
    #[serde(default)]
    pub stderr: String,
    pub success: bool,
    #[serde(default)]
    pub changes: BTreeMap<String, FileChange>,
    pub status: EndStatus,
}

/// What a patch did to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FileChange {
    Add { content: String },
    Delete { content: String },
    Update { unified_diff: String, move_path: Option<String> },
}

/// Payload of `mcp_tool_call_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpToolCallEnd {
    pub call_id: String,
    pub invocation: McpInvocation,
    pub duration: Duration,
    /// `{"Ok": …}` or `{"Err": "text"}`.
    pub result: Result<McpResult, String>,
    /// Whether the server says that the tool changes nothing. Other readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub read_only_hint: Option<bool>,
    /// The plugin that the server belongs to. Other readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub plugin_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpInvocation {
    pub server: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: Option<JsonValue>,
}

/// What a tool of an MCP server returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResult {
    #[serde(default)]
    pub content: Vec<JsonValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<JsonValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonValue>,
}

/// Payload of `view_image_tool_call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewImageToolCall {
    pub call_id: String,
    pub path: String,
}

/// What a sub-agent was doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    PendingInit,
    Running,
    Interrupted,
    /// With its last message.
    Completed(Option<String>),
    Errored(String),
    Shutdown,
    NotFound,
}

/// Payload of `collab_agent_spawn_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollabAgentSpawnEnd {
    pub call_id: String,
    pub sender_thread_id: String,
    #[serde(default)]
    pub new_thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_agent_nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_agent_role: Option<String>,
    #[serde(default)]
    pub prompt: String,
    #[serde(default)]
    pub model: String,
    /// The reference drops the line when model or effort is missing.
    #[serde(default = "medium")]
    pub reasoning_effort: ReasoningEffort,
    pub status: AgentStatus,
}

fn medium() -> ReasoningEffort {
    ReasoningEffort::Medium
}

/// Payload of `collab_agent_interaction_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollabAgentInteractionEnd {
    pub call_id: String,
    pub sender_thread_id: String,
    pub receiver_thread_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_role: Option<String>,
    #[serde(default)]
    pub prompt: String,
    pub status: AgentStatus,
}

/// Payload of `collab_waiting_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollabWaitingEnd {
    pub sender_thread_id: String,
    pub call_id: String,
    pub statuses: BTreeMap<String, AgentStatus>,
}

/// Payload of `collab_close_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollabCloseEnd {
    pub call_id: String,
    pub sender_thread_id: String,
    pub receiver_thread_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_role: Option<String>,
    pub status: AgentStatus,
}

/// Payload of `collab_resume_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollabResumeEnd {
    pub call_id: String,
    pub sender_thread_id: String,
    pub receiver_thread_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_nickname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_agent_role: Option<String>,
    pub status: AgentStatus,
}

/// Payload of `dynamic_tool_call_request`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallRequest {
    pub call_id: String,
    pub turn_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub tool: String,
    pub arguments: JsonValue,
}

/// Payload of `dynamic_tool_call_response`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DynamicToolCallResponse {
    pub call_id: String,
    pub turn_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub tool: String,
    pub arguments: JsonValue,
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    pub success: bool,
    #[serde(default)]
    pub error: Option<String>,
    pub duration: Duration,
}

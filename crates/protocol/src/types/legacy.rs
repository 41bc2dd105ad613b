//! Methods of the first protocol generation that are still served: two approval requests and three client requests.
//! Their field names keep the original spelling.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AuthMode, JsonValue, NetworkPolicyAmendment, Secret, ThreadId};

/// Params of `applyPatchApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyPatchApprovalParams {
    pub conversation_id: ThreadId,
    pub call_id: String,
    pub file_changes: BTreeMap<String, FileChange>,
    pub reason: Option<String>,
    pub grant_root: Option<String>,
}

/// Params of `execCommandApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecCommandApprovalParams {
    pub conversation_id: ThreadId,
    pub call_id: String,
    pub approval_id: Option<String>,
    pub command: Vec<String>,
    pub cwd: String,
    pub reason: Option<String>,
    pub parsed_cmd: Vec<ParsedCommand>,
}

/// A change to one file, in the spelling of the first generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FileChange {
    Add { content: String },
    Delete { content: String },
    Update { unified_diff: String, move_path: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ParsedCommand {
    Read { cmd: String, name: String, path: String },
    ListFiles { cmd: String, path: Option<String> },
    Search { cmd: String, query: Option<String>, path: Option<String> },
    Unknown { cmd: String },
}

/// The decision on a first-generation approval request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    Approved,
    ApprovedExecpolicyAmendment { proposed_execpolicy_amendment: Vec<String> },
    ApprovedForSession,
    NetworkPolicyAmendment { network_policy_amendment: NetworkPolicyAmendment },
    Denied,
    Abort,
}

/// Result of `applyPatchApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplyPatchApprovalResponse {
    pub decision: ReviewDecision,
}

/// Result of `execCommandApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCommandApprovalResponse {
    pub decision: ReviewDecision,
}

/// Params of `getConversationSummary`: a thread, by its rollout file or by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum GetConversationSummaryParams {
    ByPath { rollout_path: String },
    ById { conversation_id: ThreadId },
}

/// Result of `getConversationSummary`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetConversationSummaryResponse {
    pub summary: ConversationSummary,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    pub conversation_id: ThreadId,
    pub path: String,
    pub preview: String,
    pub timestamp: Option<String>,
    pub updated_at: Option<String>,
    pub model_provider: String,
    pub cwd: String,
    pub cli_version: String,
    /// In the spelling of the rollout, which differs from other methods.
    pub source: JsonValue,
    pub git_info: Option<ConversationGitInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationGitInfo {
    pub sha: Option<String>,
    pub branch: Option<String>,
    pub origin_url: Option<String>,
}

/// Params of `gitDiffToRemote`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitDiffToRemoteParams {
    pub cwd: String,
}

/// Result of `gitDiffToRemote`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitDiffToRemoteResponse {
    pub sha: String,
    pub diff: String,
}

/// Params of `getAuthStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAuthStatusParams {
    pub include_token: Option<bool>,
    pub refresh_token: Option<bool>,
}

/// Result of `getAuthStatus`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAuthStatusResponse {
    pub auth_method: Option<AuthMode>,
    pub auth_token: Option<Secret>,
    pub requires_openai_auth: Option<bool>,
}

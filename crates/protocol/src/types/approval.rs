//! Approvals: the approval requests, permissions, and the guardian's reviews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{AbsolutePathBuf, CommandAction, JsonValue, Level, RequestId};

/// The guardian's assessment of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuardianApprovalReview {
    #[serde(serialize_with = "status_for_level")]
    pub status: GuardianApprovalReviewStatus,
    pub risk_score: Option<u8>,
    #[serde(serialize_with = "risk_for_level")]
    pub risk_level: Option<GuardianRiskLevel>,
    pub rationale: Option<String>,
    /// Sent for newer clients.
    #[serde(default)]
    pub user_authorization: Option<GuardianUserAuthorization>,
}

/// A status that the client's release lacks is sent as the nearest that it has.
fn status_for_level<S: Serializer>(status: &GuardianApprovalReviewStatus, serializer: S) -> Result<S::Ok, S::Error> {
    match status {
        GuardianApprovalReviewStatus::TimedOut if Level::encoding() == Some(Level::V0_118) => {
            GuardianApprovalReviewStatus::Denied.serialize(serializer)
        }
        status => status.serialize(serializer),
    }
}

/// A risk that the client's release lacks is sent as the nearest that it has.
fn risk_for_level<S: Serializer>(risk: &Option<GuardianRiskLevel>, serializer: S) -> Result<S::Ok, S::Error> {
    match risk {
        Some(GuardianRiskLevel::Critical) if Level::encoding() == Some(Level::V0_118) => {
            Some(GuardianRiskLevel::High).serialize(serializer)
        }
        risk => risk.serialize(serializer),
    }
}

/// Whether the user asked for an action, as the reviewer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardianUserAuthorization {
    Unknown,
    Low,
    Medium,
    High,
}

/// Params of `thread/approveGuardianDeniedAction`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadApproveGuardianDeniedActionParams {
    pub thread_id: String,
    /// The event of the denial: the notification, or its stored form.
    pub event: JsonValue,
}

/// Result of `thread/approveGuardianDeniedAction`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadApproveGuardianDeniedActionResponse {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardianApprovalReviewStatus {
    InProgress,
    Approved,
    Denied,
    TimedOut,
    Aborted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardianRiskLevel {
    Low,
    Medium,
    High,
    Critical,
}

/// Params of the `item/autoApprovalReview/started` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemGuardianApprovalReviewStartedNotification {
    pub thread_id: String,
    pub turn_id: String,
    pub target_item_id: String,
    pub review: GuardianApprovalReview,
    pub action: Option<JsonValue>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub review_id: String,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub started_at_ms: i64,
}

/// Params of the `item/autoApprovalReview/completed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemGuardianApprovalReviewCompletedNotification {
    pub thread_id: String,
    pub turn_id: String,
    pub target_item_id: String,
    pub review: GuardianApprovalReview,
    pub action: Option<JsonValue>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub review_id: String,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub started_at_ms: i64,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub completed_at_ms: i64,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub decision_source: String,
}

/// Params of the `serverRequest/resolved` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerRequestResolvedNotification {
    pub thread_id: String,
    pub request_id: RequestId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdditionalFileSystemPermissions {
    pub read: Option<Vec<AbsolutePathBuf>>,
    pub write: Option<Vec<AbsolutePathBuf>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdditionalNetworkPermissions {
    pub enabled: Option<bool>,
}

/// Permissions beyond the sandbox policy that a command requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalPermissionProfile {
    pub network: Option<AdditionalNetworkPermissions>,
    pub file_system: Option<AdditionalFileSystemPermissions>,
}

/// The decision on `item/commandExecution/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandExecutionApprovalDecision {
    Accept,
    AcceptForSession,
    AcceptWithExecpolicyAmendment { execpolicy_amendment: Vec<String> },
    ApplyNetworkPolicyAmendment { network_policy_amendment: NetworkPolicyAmendment },
    Decline,
    Cancel,
}

/// Params of `item/commandExecution/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionRequestApprovalParams {
    pub thread_id: String,
    pub turn_id: String,
    pub item_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_approval_context: Option<NetworkApprovalContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_actions: Option<Vec<CommandAction>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_permissions: Option<AdditionalPermissionProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_network_policy_amendments: Option<Vec<NetworkPolicyAmendment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_decisions: Option<Vec<CommandExecutionApprovalDecision>>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub started_at_ms: i64,
}

/// Params of `item/fileChange/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeRequestApprovalParams {
    pub thread_id: String,
    pub turn_id: String,
    pub item_id: String,
    pub reason: Option<String>,
    pub grant_root: Option<String>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub started_at_ms: i64,
}

/// The network connection that needs approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkApprovalContext {
    pub host: String,
    pub protocol: NetworkApprovalProtocol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NetworkApprovalProtocol {
    Http,
    Https,
    Socks5Tcp,
    Socks5Udp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPolicyAmendment {
    pub host: String,
    pub action: NetworkPolicyRuleAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NetworkPolicyRuleAction {
    Allow,
    Deny,
}

/// Params of `item/permissions/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalParams {
    pub thread_id: String,
    pub turn_id: String,
    pub item_id: String,
    pub reason: Option<String>,
    pub permissions: RequestPermissionProfile,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub cwd: String,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub started_at_ms: i64,
}

/// Permissions that the agent requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermissionProfile {
    pub network: Option<AdditionalNetworkPermissions>,
    pub file_system: Option<AdditionalFileSystemPermissions>,
}

/// Result of `item/commandExecution/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandExecutionRequestApprovalResponse {
    pub decision: CommandExecutionApprovalDecision,
}

/// The decision on `item/fileChange/requestApproval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileChangeApprovalDecision {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
}

/// Result of `item/fileChange/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChangeRequestApprovalResponse {
    pub decision: FileChangeApprovalDecision,
}

/// Permissions that the client grants; anything absent is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedPermissionProfile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<AdditionalNetworkPermissions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<AdditionalFileSystemPermissions>,
}

/// How long granted permissions last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionGrantScope {
    #[default]
    Turn,
    Session,
}

/// Result of `item/permissions/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionsRequestApprovalResponse {
    pub permissions: GrantedPermissionProfile,
    #[serde(default)]
    pub scope: PermissionGrantScope,
}

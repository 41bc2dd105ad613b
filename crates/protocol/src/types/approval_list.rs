//! Approvals as stored objects: what turns requested of clients, and what was decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonValue;

/// A decision in one word, which every approval understands. What needs an answer beyond yes or no is not accepted:
/// questions get no answers, forms with fields and links are declined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalDefault {
    #[default]
    Decline,
    Accept,
    /// Declines, and interrupts the turn where the approval has such a decision.
    Cancel,
}

impl ApprovalDefault {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decline => "decline",
            Self::Accept => "accept",
            Self::Cancel => "cancel",
        }
    }
}

/// The approvals that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalFilter {
    Open,
    /// Those that are no longer open, whatever ended them.
    Decided,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalState {
    Open,
    Decided,
    /// The default decision counts, because the deadline has passed.
    Expired,
    /// Nothing was decided, and nothing waits for it any more.
    Cancelled,
}

/// Who decided an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecidedBy {
    /// The number of the connection in its server process, or `deadline`.
    pub connection: String,
    /// The name of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The role of a client whose rights are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// An approval. Times are Unix seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    pub id: String,
    pub thread_id: String,
    pub turn_id: Option<String>,
    pub item_id: Option<String>,
    /// The method and the params of the server request.
    pub method: String,
    pub params: JsonValue,
    pub state: ApprovalState,
    pub asked_at: i64,
    /// When the default decision counts, if there is no other one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_decision: Option<ApprovalDefault>,
    /// The `decision` of commands and patches; the whole result of other server requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<JsonValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<ApprovalDecidedBy>,
}

/// Params of `approval/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ApprovalFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: 25; at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `approval/list`: the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalListResponse {
    pub data: Vec<ApprovalRecord>,
    pub next_cursor: Option<String>,
}

/// Params of `approval/decide`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecideParams {
    pub approval_id: String,
    /// What a client would answer: the `decision` of commands and patches, the whole result of other server requests.
    /// Or a word: `accept`, `decline`, `cancel`.
    pub decision: JsonValue,
}

/// Result of `approval/decide`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDecideResponse {
    pub approval: ApprovalRecord,
}

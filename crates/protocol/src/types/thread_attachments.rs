//! Records of clients on threads: `thread/attachment/*`, `thread/attachmentOwner/list`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonValue;

/// A record that a client attached to a thread. Its type and key identify it within the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachment {
    pub id: String,
    pub attachment_type: String,
    pub identity_key: String,
    pub payload: JsonValue,
    pub created_at: i64,
}

/// Params of `thread/attachment/add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentAddParams {
    pub thread_id: String,
    pub attachment_type: String,
    pub identity_key: String,
    pub payload: JsonValue,
    /// What happens to a record that exists already; it is kept by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_exists: Option<ThreadAttachmentIfExists>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentIfExists {
    Keep,
    Replace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentAddOutcome {
    Created,
    Existing,
}

/// Result of `thread/attachment/add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadAttachmentAddResponse {
    pub outcome: ThreadAttachmentAddOutcome,
    pub attachment: ThreadAttachment,
}

/// Params of `thread/attachment/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `thread/attachment/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListResponse {
    pub data: Vec<ThreadAttachment>,
    pub next_cursor: Option<String>,
}

/// Params of `thread/attachment/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentRemoveParams {
    pub thread_id: String,
    pub attachment_type: String,
    pub identity_key: String,
}

/// Result of `thread/attachment/remove`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadAttachmentRemoveResponse {}

/// Params of `thread/attachmentOwner/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListParams {
    pub attachment_type: String,
    pub identity_key: String,
    /// Absent: archived threads and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A thread that has a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwner {
    pub thread_id: String,
    pub archived: bool,
}

/// Result of `thread/attachmentOwner/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListResponse {
    pub data: Vec<ThreadAttachmentOwner>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentOperation {
    Created,
    Deleted,
}

/// Params of the `thread/attachment/updated` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentUpdatedNotification {
    pub thread_id: String,
    pub attachment_type: String,
    pub identity_key: String,
    pub attachment_id: String,
    pub operation: ThreadAttachmentOperation,
}

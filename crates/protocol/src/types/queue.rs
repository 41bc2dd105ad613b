//! The queue of a thread: user messages that become turns, one after the other, while the thread is idle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Turn, UserInput};

/// A user message that waits to become a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmission {
    pub id: String,
    pub input: Vec<UserInput>,
    pub client_user_message_id: String,
}

/// Params of `thread/queue/add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddParams {
    pub thread_id: String,
    pub input: Vec<UserInput>,
    pub client_user_message_id: String,
}

/// Result of `thread/queue/add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddResponse {
    pub queued_submission: QueuedSubmission,
}

/// Params of `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListResponse {
    pub data: Vec<QueuedSubmission>,
    pub next_cursor: Option<String>,
    /// Whether the queue waits because the last turn of the thread was interrupted.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub stalled: bool,
}

/// Params of `thread/queue/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateParams {
    pub thread_id: String,
    pub queued_submission_id: String,
    pub input: Vec<UserInput>,
}

/// Result of `thread/queue/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateResponse {
    pub queued_submission: QueuedSubmission,
}

/// Params of `thread/queue/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteParams {
    pub thread_id: String,
    pub queued_submission_id: String,
}

/// Result of `thread/queue/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadQueueDeleteResponse {
    pub deleted: bool,
}

/// Params of `thread/queue/reorder`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueReorderParams {
    pub thread_id: String,
    pub queued_submission_ids: Vec<String>,
}

/// Result of `thread/queue/reorder`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadQueueReorderResponse {}

/// Params of `thread/queue/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_submission_id: Option<String>,
}

/// Result of `thread/queue/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadQueueStartResponse {
    pub turn: Turn,
}

/// Params of the `thread/queue/changed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueChangedNotification {
    pub thread_id: String,
}

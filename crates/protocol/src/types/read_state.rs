//! What a user has read of a thread: `thread/readState/update`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From where on a thread is unread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadUnreadPosition {
    Turn { turn_id: String },
    ThreadStart,
}

/// The read state of a thread. The revision is opaque and changes with every update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// Null when everything is read.
    pub first_unread: Option<ThreadUnreadPosition>,
    pub revision: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ThreadReadStateOperation {
    Read,
    Unread,
}

/// Params of `thread/readState/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateParams {
    pub thread_id: String,
    pub expected_revision: String,
    pub operation: ThreadReadStateOperation,
}

/// Result of `thread/readState/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateResponse {
    pub read_state: ThreadReadState,
}

/// Params of the `thread/readState/changed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateChangedNotification {
    pub thread_id: String,
    pub read_state: ThreadReadState,
}

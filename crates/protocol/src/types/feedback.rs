//! `feedback/upload`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `feedback/upload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadParams {
    pub classification: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Newer clients may omit it.
    #[serde(default)]
    pub include_logs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_log_files: Option<Vec<String>>,
}

/// Result of `feedback/upload`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadResponse {
    pub thread_id: String,
}

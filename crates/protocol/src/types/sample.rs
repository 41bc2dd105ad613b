//! `thread/sample`: one model call on top of a thread, of which the thread keeps nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ReasoningEffort, RequestId};

/// Params of `thread/sample`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSampleParams {
    pub thread_id: String,
    /// The last finished turn of the thread, as the client knows it.
    pub expected_turn_id: String,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub disable_mcp: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_trigger: Option<String>,
}

/// Result of `thread/sample`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSampleResponse {
    pub source_turn_id: String,
    pub response_id: String,
    /// Null when the model wrote no message, as when it called a tool.
    pub text: Option<String>,
    pub input_tokens: Option<i64>,
    pub cached_input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

/// Params of `thread/sample/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ThreadSampleCancelParams {
    /// The id of the `thread/sample` request, on the same connection.
    pub request_id: RequestId,
}

/// Result of `thread/sample/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSampleCancelResponse {}

//! Memory of earlier threads, and other maintenance of stored threads: `memory/*`, `thread/memory*`,
//! `rollout/compress`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a thread takes part in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadMemoryMode {
    Enabled,
    Disabled,
}

/// Params of `thread/memoryMode/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMemoryModeSetParams {
    pub thread_id: String,
    pub mode: ThreadMemoryMode,
}

/// Result of `thread/memoryMode/set`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadMemoryModeSetResponse {}

/// Params of `thread/memory/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMemoryReadParams {
    pub thread_id: String,
}

/// Result of `thread/memory/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadMemoryReadResponse {
    /// Null without memory of the thread.
    pub summary: Option<String>,
}

/// Result of `memory/reset`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryResetResponse {}

/// Params of `memory/status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatusParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_consolidated_threads: Option<u32>,
}

/// Result of `memory/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatusResponse {
    #[serde(rename = "v2ConsolidatedThreads")]
    pub v2_consolidated_threads: u32,
    #[serde(rename = "v2Ready")]
    pub v2_ready: bool,
}

/// Result of `rollout/compress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutCompressResponse {}

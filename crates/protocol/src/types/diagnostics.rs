//! The state of the server process: `server/diagnostics`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `server/diagnostics`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDiagnosticsParams {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsProcess {
    pub id: u32,
    pub resident_memory_bytes: Option<u64>,
    /// Null where the system has no such number.
    pub physical_footprint_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDiagnosticsGauge {
    pub name: String,
    pub value: u64,
}

/// Result of `server/diagnostics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDiagnosticsResponse {
    pub process: ServerDiagnosticsProcess,
    pub gauges: Vec<ServerDiagnosticsGauge>,
}

//! `process/*`: programs that a client runs on the host, outside of threads and sandboxes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AbsolutePathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessTerminalSize {
    pub rows: u16,
    pub cols: u16,
}

/// Params of `process/spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSpawnParams {
    pub command: Vec<String>,
    pub cwd: AbsolutePathBuf,
    /// Chosen by the client; names the program on its connection.
    pub process_handle: String,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub tty: bool,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub stream_stdin: bool,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub stream_stdout_stderr: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes_cap: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ProcessTerminalSize>,
}

/// Result of `process/spawn`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSpawnResponse {}

/// Params of `process/writeStdin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessWriteStdinParams {
    pub process_handle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_base64: Option<String>,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub close_stdin: bool,
}

/// Result of `process/writeStdin`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWriteStdinResponse {}

/// Params of `process/resizePty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessResizePtyParams {
    pub process_handle: String,
    pub size: ProcessTerminalSize,
}

/// Result of `process/resizePty`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessResizePtyResponse {}

/// Params of `process/kill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessKillParams {
    pub process_handle: String,
}

/// Result of `process/kill`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessKillResponse {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProcessOutputStream {
    Stdout,
    Stderr,
}

/// Params of the `process/outputDelta` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessOutputDeltaNotification {
    pub process_handle: String,
    pub stream: ProcessOutputStream,
    pub delta_base64: String,
    pub cap_reached: bool,
}

/// Params of the `process/exited` notification, the last one about a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExitedNotification {
    pub process_handle: String,
    pub exit_code: i32,
    pub stdout: String,
    pub stdout_cap_reached: bool,
    pub stderr: String,
    pub stderr_cap_reached: bool,
    /// Whether output was still open when the server stopped reading it.
    pub output_drain_timed_out: Option<bool>,
}

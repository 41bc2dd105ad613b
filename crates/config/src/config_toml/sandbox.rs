//! `[sandbox_workspace_write]`: additions to the workspace-write sandbox.

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wire's `SandboxWorkspaceWrite` with its roots resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceWrite {
    /// Folders that can be written beside the working directory.
    pub writable_roots: Vec<AbsolutePathBuf>,
    /// Whether commands have network access. Default: `false`.
    pub network_access: bool,
    /// Whether `$TMPDIR` is read-only. Default: `false`.
    pub exclude_tmpdir_env_var: bool,
    /// Whether `/tmp` is read-only. Default: `false`.
    pub exclude_slash_tmp: bool,
}

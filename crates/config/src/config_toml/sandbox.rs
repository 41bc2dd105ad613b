//! `[sandbox_workspace_write]`: additions to the workspace-write sandbox.

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wire's `SandboxWorkspaceWrite` with its roots resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceWrite {
    pub writable_roots: Vec<AbsolutePathBuf>,
    pub network_access: bool,
    pub exclude_tmpdir_env_var: bool,
    pub exclude_slash_tmp: bool,
}

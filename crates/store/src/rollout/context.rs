//! `turn_context`, the settings of a turn, and `compacted`, a summarised past.

use std::path::PathBuf;

use loomd_protocol::{
    self as wire, AbsolutePathBuf, AskForApproval, CollaborationMode, JsonValue, ReasoningEffort, ResponseItem,
};
use serde::{Deserialize, Serialize};

/// Payload of `turn_context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    pub approval_policy: AskForApproval,
    pub sandbox_policy: SandboxPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub active_permission_profile: Option<wire::ActivePermissionProfile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<JsonValue>,
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub collaboration_mode: Option<CollaborationMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// `auto`, `concise`, `detailed` or `none`.
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_output_json_schema: Option<JsonValue>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub truncation_policy: Option<TruncationPolicy>,
}

/// How much of a tool's output the model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", content = "limit", rename_all = "snake_case")]
pub enum TruncationPolicy {
    Bytes(u64),
    Tokens(u64),
}

/// Payload of `compacted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The summary.
    pub message: String,
    /// What the model's history is from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_history: Option<Vec<ResponseItem>>,
}

/// What commands may read, write and reach, as the file spells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum SandboxPolicy {
    DangerFullAccess,
    ReadOnly {
        #[serde(default, skip_serializing_if = "ReadAccess::is_full")]
        access: ReadAccess,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network_access: bool,
    },
    ExternalSandbox {
        #[serde(default)]
        network_access: NetworkAccess,
    },
    WorkspaceWrite {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        writable_roots: Vec<PathBuf>,
        #[serde(default, skip_serializing_if = "ReadAccess::is_full")]
        read_only_access: ReadAccess,
        #[serde(default)]
        network_access: bool,
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        #[serde(default)]
        exclude_slash_tmp: bool,
    },
}

/// Which files a sandboxed command may read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ReadAccess {
    Restricted {
        #[serde(default = "yes")]
        include_platform_defaults: bool,
        #[serde(default)]
        readable_roots: Vec<PathBuf>,
    },
    #[default]
    FullAccess,
}

/// Whether an outer sandbox lets commands reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    #[default]
    Restricted,
    Enabled,
}

impl ReadAccess {
    fn is_full(&self) -> bool {
        *self == Self::FullAccess
    }
}

fn yes() -> bool {
    true
}

impl From<wire::SandboxPolicy> for SandboxPolicy {
    fn from(policy: wire::SandboxPolicy) -> Self {
        match policy {
            wire::SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            wire::SandboxPolicy::ReadOnly { access, network_access } => {
                Self::ReadOnly { access: access.into(), network_access }
            }
            wire::SandboxPolicy::ExternalSandbox { network_access } => Self::ExternalSandbox {
                network_access: match network_access {
                    wire::NetworkAccess::Restricted => NetworkAccess::Restricted,
                    wire::NetworkAccess::Enabled => NetworkAccess::Enabled,
                },
            },
            wire::SandboxPolicy::WorkspaceWrite {
                writable_roots,
                read_only_access,
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            } => Self::WorkspaceWrite {
                writable_roots: writable_roots.into_iter().map(AbsolutePathBuf::into_path_buf).collect(),
                read_only_access: read_only_access.into(),
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            },
        }
    }
}

/// Paths that are not absolute, which no policy has had for long, are left out.
impl From<SandboxPolicy> for wire::SandboxPolicy {
    fn from(policy: SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            SandboxPolicy::ReadOnly { access, network_access } => {
                Self::ReadOnly { access: access.into(), network_access }
            }
            SandboxPolicy::ExternalSandbox { network_access } => Self::ExternalSandbox {
                network_access: match network_access {
                    NetworkAccess::Restricted => wire::NetworkAccess::Restricted,
                    NetworkAccess::Enabled => wire::NetworkAccess::Enabled,
                },
            },
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                read_only_access,
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            } => Self::WorkspaceWrite {
                writable_roots: writable_roots.into_iter().filter_map(AbsolutePathBuf::new).collect(),
                read_only_access: read_only_access.into(),
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            },
        }
    }
}

impl From<ReadAccess> for wire::ReadOnlyAccess {
    fn from(access: ReadAccess) -> Self {
        match access {
            ReadAccess::FullAccess => Self::FullAccess,
            ReadAccess::Restricted { include_platform_defaults, readable_roots } => Self::Restricted {
                include_platform_defaults,
                readable_roots: readable_roots.into_iter().filter_map(AbsolutePathBuf::new).collect(),
            },
        }
    }
}

impl From<wire::ReadOnlyAccess> for ReadAccess {
    fn from(access: wire::ReadOnlyAccess) -> Self {
        match access {
            wire::ReadOnlyAccess::FullAccess => Self::FullAccess,
            wire::ReadOnlyAccess::Restricted { include_platform_defaults, readable_roots } => Self::Restricted {
                include_platform_defaults,
                readable_roots: readable_roots.into_iter().map(AbsolutePathBuf::into_path_buf).collect(),
            },
        }
    }
}

//! Approval policies and sandbox policies.

use schemars::JsonSchema;
use serde::ser::SerializeStructVariant;
use serde::{Deserialize, Serialize, Serializer};

use crate::{AbsolutePathBuf, Level};

/// Who decides on approval requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalsReviewer {
    User,
    /// Newer releases call it `auto_review`.
    #[serde(alias = "auto_review")]
    GuardianSubagent,
}

impl Serialize for ApprovalsReviewer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::User => "user",
            Self::GuardianSubagent if Level::encoding() == Some(Level::V0_166) => "auto_review",
            Self::GuardianSubagent => "guardian_subagent",
        })
    }
}

/// When the agent must request approval. Newer releases lack `on-failure`; to their clients it is `on-request`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskForApproval {
    Untrusted,
    OnFailure,
    OnRequest,
    Granular {
        sandbox_approval: bool,
        rules: bool,
        #[serde(default)]
        skill_approval: bool,
        #[serde(default)]
        request_permissions: bool,
        mcp_elicitations: bool,
    },
    Never,
}

impl Serialize for AskForApproval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self {
            Self::Untrusted => "untrusted",
            Self::OnFailure if Level::encoding() == Some(Level::V0_166) => "on-request",
            Self::OnFailure => "on-failure",
            Self::OnRequest => "on-request",
            Self::Never => "never",
            Self::Granular { sandbox_approval, rules, skill_approval, request_permissions, mcp_elicitations } => {
                let mut fields = serializer.serialize_struct_variant("AskForApproval", 3, "granular", 5)?;
                fields.serialize_field("sandbox_approval", sandbox_approval)?;
                fields.serialize_field("rules", rules)?;
                fields.serialize_field("skill_approval", skill_approval)?;
                fields.serialize_field("request_permissions", request_permissions)?;
                fields.serialize_field("mcp_elicitations", mcp_elicitations)?;
                return fields.end();
            }
        };
        serializer.serialize_str(name)
    }
}

/// The three sandbox presets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NetworkAccess {
    #[default]
    Restricted,
    Enabled,
}

/// The files that a sandboxed command may read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReadOnlyAccess {
    Restricted {
        #[serde(default = "crate::serde_util::default_true")]
        include_platform_defaults: bool,
        #[serde(default)]
        readable_roots: Vec<AbsolutePathBuf>,
    },
    #[default]
    FullAccess,
}

impl ReadOnlyAccess {
    /// Newer releases have no such field; a restriction is sent all the same.
    fn is_left_out(&self) -> bool {
        Level::encoding() == Some(Level::V0_166) && *self == Self::FullAccess
    }
}

/// What commands may read, write and reach on the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SandboxPolicy {
    DangerFullAccess,
    ReadOnly {
        #[serde(default, skip_serializing_if = "ReadOnlyAccess::is_left_out")]
        access: ReadOnlyAccess,
        #[serde(default)]
        network_access: bool,
    },
    ExternalSandbox {
        #[serde(default)]
        network_access: NetworkAccess,
    },
    WorkspaceWrite {
        #[serde(default)]
        writable_roots: Vec<AbsolutePathBuf>,
        #[serde(default, skip_serializing_if = "ReadOnlyAccess::is_left_out")]
        read_only_access: ReadOnlyAccess,
        #[serde(default)]
        network_access: bool,
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        #[serde(default)]
        exclude_slash_tmp: bool,
    },
}

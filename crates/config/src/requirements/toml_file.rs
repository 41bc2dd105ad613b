//! `requirements.toml`, and the requirements that a legacy `managed_config.toml` implies.

use std::collections::BTreeMap;

use loomd_protocol::{AskForApproval, ResidencyRequirement, SandboxMode, SandboxPolicy, WebSearchMode};
use serde::Deserialize;
use thiserror::Error;
use toml::Table;

use super::network::NetworkToml;
use super::{DisallowedValue, Requirement, RequirementSource, Requirements};

/// A sandbox that may be allowed: the presets, and an external one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxRequirement {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    ExternalSandbox,
}

impl SandboxRequirement {
    pub(super) fn preset(self) -> Option<SandboxMode> {
        match self {
            Self::ReadOnly => Some(SandboxMode::ReadOnly),
            Self::WorkspaceWrite => Some(SandboxMode::WorkspaceWrite),
            Self::DangerFullAccess => Some(SandboxMode::DangerFullAccess),
            Self::ExternalSandbox => None,
        }
    }
}

impl From<SandboxMode> for SandboxRequirement {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::ReadOnly => Self::ReadOnly,
            SandboxMode::WorkspaceWrite => Self::WorkspaceWrite,
            SandboxMode::DangerFullAccess => Self::DangerFullAccess,
        }
    }
}

impl From<&SandboxPolicy> for SandboxRequirement {
    fn from(policy: &SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::ReadOnly { .. } => Self::ReadOnly,
            SandboxPolicy::WorkspaceWrite { .. } => Self::WorkspaceWrite,
            SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            SandboxPolicy::ExternalSandbox { .. } => Self::ExternalSandbox,
        }
    }
}

/// What identifies an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpIdentity {
    Command(String),
    Url(String),
}

/// The file as written. Unknown keys are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RequirementsToml {
    allowed_approval_policies: Option<Vec<AskForApproval>>,
    allowed_sandbox_modes: Option<Vec<SandboxRequirement>>,
    allowed_web_search_modes: Option<Vec<WebSearchMode>>,
    #[serde(alias = "feature_requirements")]
    features: Option<BTreeMap<String, bool>>,
    mcp_servers: Option<BTreeMap<String, McpServerRequirementToml>>,
    apps: BTreeMap<String, AppRequirementToml>,
    rules: Option<Table>,
    enforce_residency: Option<ResidencyRequirement>,
    experimental_network: Option<NetworkToml>,
    guardian_developer_instructions: Option<String>,
}

#[derive(Deserialize)]
struct McpServerRequirementToml {
    identity: McpIdentity,
}

#[derive(Deserialize)]
struct AppRequirementToml {
    enabled: Option<bool>,
}

/// Why a text is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ParseError {
    /// Not TOML, or a value of a wrong type.
    #[error("{0}")]
    Syntax(String),
    /// Requirements that no value can meet. Names the key.
    #[error("{0}")]
    Contradiction(String),
}

impl From<toml::de::Error> for ParseError {
    fn from(error: toml::de::Error) -> Self {
        Self::Syntax(error.to_string())
    }
}

/// Parses requirements. Unknown features are preserved: see [`Requirements::check_pins`].
pub(crate) fn parse(text: &str, source: RequirementSource) -> Result<Requirements, ParseError> {
    let table: Table = text.parse()?;
    let any = !table.is_empty();
    let file: RequirementsToml = table.try_into()?;
    if file.allowed_approval_policies.as_ref().is_some_and(Vec::is_empty) {
        return Err(ParseError::Contradiction("field `allowed_approval_policies` cannot be empty".into()));
    }
    if let Some(modes) = &file.allowed_sandbox_modes
        && !modes.contains(&SandboxRequirement::ReadOnly)
    {
        let disallowed = DisallowedValue {
            field: "allowed_sandbox_modes",
            value: format!("{modes:?}"),
            allowed: "must include 'read-only' to allow any SandboxPolicy".into(),
            source_name: source.to_string(),
        };
        return Err(ParseError::Contradiction(disallowed.to_string()));
    }
    let network = file.experimental_network.map(NetworkToml::into_wire).transpose();
    let network = network.map_err(ParseError::Contradiction)?;
    Ok(Requirements {
        approval_policies: required(file.allowed_approval_policies, &source),
        sandbox_modes: required(file.allowed_sandbox_modes, &source),
        web_search_modes: required(file.allowed_web_search_modes, &source),
        features: required(file.features, &source),
        mcp_servers: required(
            file.mcp_servers.map(|servers| servers.into_iter().map(|(name, server)| (name, server.identity)).collect()),
            &source,
        ),
        apps: file.apps.into_iter().filter_map(|(id, app)| Some((id, app.enabled?))).collect(),
        rules: required(file.rules, &source),
        residency: required(file.enforce_residency, &source),
        network: required(network, &source),
        guardian_developer_instructions: required(file.guardian_developer_instructions, &source),
        any,
    })
}

/// Returns the requirements that a legacy managed file implies.
pub(crate) fn legacy(table: &Table, source: &RequirementSource) -> Requirements {
    let value = |key: &str| table.get(key).cloned();
    let policy: Option<AskForApproval> = value("approval_policy").and_then(|value| value.try_into().ok());
    let mode: Option<SandboxRequirement> = value("sandbox_mode").and_then(|value| value.try_into().ok());
    let modes = mode.map(|mode| match mode {
        SandboxRequirement::ReadOnly => vec![mode],
        other => vec![SandboxRequirement::ReadOnly, other],
    });
    Requirements {
        any: policy.is_some() || modes.is_some(),
        approval_policies: required(policy.map(|policy| vec![policy]), source),
        sandbox_modes: required(modes, source),
        ..Requirements::default()
    }
}

fn required<T>(value: Option<T>, source: &RequirementSource) -> Option<Requirement<T>> {
    value.map(|value| Requirement { value, source: source.clone() })
}

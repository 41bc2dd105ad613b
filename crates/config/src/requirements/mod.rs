//! An administrator's requirements: allowed values, pinned features, allowed MCP servers and apps. A field that one
//! source sets cannot be changed by later sources.

mod managed;
mod network;
mod toml_file;

use std::collections::BTreeMap;
use std::fmt;

use loomd_protocol::{
    AbsolutePathBuf, AskForApproval, ConfigRequirements, NetworkRequirements, ResidencyRequirement, SandboxMode,
    SandboxPolicy, WebSearchMode,
};
use thiserror::Error;
use toml::Table;

use crate::config_toml::{McpServer, McpTransport};
use crate::features::FeatureSet;
use crate::{ConfigError, Feature};

pub use managed::{CloudError, ManagedRequirements};
pub use toml_file::{McpIdentity, SandboxRequirement};
pub(crate) use toml_file::{ParseError, legacy, parse};

/// The source of a requirement. `Display` is its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementSource {
    Cloud,
    File(AbsolutePathBuf),
}

impl fmt::Display for RequirementSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cloud => f.write_str("cloud requirements"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A requirement and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement<T> {
    pub value: T,
    pub source: RequirementSource,
}

/// The requirements of all sources. Empty by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirements {
    pub approval_policies: Option<Requirement<Vec<AskForApproval>>>,
    pub sandbox_modes: Option<Requirement<Vec<SandboxRequirement>>>,
    pub web_search_modes: Option<Requirement<Vec<WebSearchMode>>>,
    pub features: Option<Requirement<BTreeMap<String, bool>>>,
    pub mcp_servers: Option<Requirement<BTreeMap<String, McpIdentity>>>,
    /// `false` from any source wins.
    pub apps: BTreeMap<String, bool>,
    pub rules: Option<Requirement<Table>>,
    pub residency: Option<Requirement<ResidencyRequirement>>,
    pub network: Option<Requirement<NetworkRequirements>>,
    pub guardian_developer_instructions: Option<Requirement<String>>,
    /// Whether any source is non-empty, even if only with unknown keys.
    pub(crate) any: bool,
}

/// Checks a `requirements.toml`; returns the problem with it, if any.
pub fn check_requirements(text: &str) -> Result<(), String> {
    parse(text, RequirementSource::Cloud).map(|_| ()).map_err(|error| error.to_string())
}

/// A value that the requirements do not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid value for `{field}`: `{value}` is not in the allowed set {allowed} (set by {source_name})")]
pub struct DisallowedValue {
    pub field: &'static str,
    pub value: String,
    pub allowed: String,
    pub source_name: String,
}

impl Requirements {
    /// Adds a source of lower precedence.
    pub(crate) fn add(&mut self, later: Self) {
        macro_rules! fill {
            ($($field:ident),*) => {$(
                if self.$field.is_none() {
                    self.$field = later.$field;
                }
            )*};
        }
        fill!(approval_policies, sandbox_modes, web_search_modes, features, mcp_servers, rules, residency, network);
        fill!(guardian_developer_instructions);
        for (app, enabled) in later.apps {
            self.apps.entry(app).and_modify(|state| *state &= enabled).or_insert(enabled);
        }
        self.any |= later.any;
    }

    /// The result of `configRequirements/read`; `None` without requirements.
    pub fn to_wire(&self) -> Option<ConfigRequirements> {
        self.any.then(|| ConfigRequirements {
            allowed_approval_policies: self.approval_policies.as_ref().map(|required| required.value.clone()),
            allowed_sandbox_modes: self
                .sandbox_modes
                .as_ref()
                .map(|required| required.value.iter().filter_map(|mode| mode.preset()).collect()),
            allowed_web_search_modes: self.allowed_web_search(),
            feature_requirements: self.features.as_ref().map(|required| required.value.clone()),
            enforce_residency: self.residency.as_ref().map(|required| required.value),
            network: self.network.as_ref().map(|required| required.value.clone()),
        })
    }

    /// Returns `wanted`, or the first allowed policy.
    pub fn approval_policy(&self, wanted: AskForApproval) -> AskForApproval {
        match (&self.approval_policies, self.check_approval_policy(&wanted)) {
            (Some(required), Err(_)) => required.value.first().cloned().unwrap_or(wanted),
            _ => wanted,
        }
    }

    pub fn check_approval_policy(&self, wanted: &AskForApproval) -> Result<(), DisallowedValue> {
        let Some(required) = &self.approval_policies else { return Ok(()) };
        // The switches of the granular policy are not restricted.
        let is_same = |allowed: &AskForApproval| std::mem::discriminant(allowed) == std::mem::discriminant(wanted);
        if required.value.iter().any(is_same) {
            return Ok(());
        }
        let allowed: Vec<_> = required.value.iter().map(approval_name).collect();
        Err(required.disallows("approval_policy", approval_name(wanted), &allowed))
    }

    /// Returns `wanted`, or `read-only`, which is always allowed.
    pub fn sandbox_mode(&self, wanted: SandboxMode) -> SandboxMode {
        if self.check_sandbox_mode(wanted).is_ok() { wanted } else { SandboxMode::ReadOnly }
    }

    pub fn check_sandbox_mode(&self, wanted: SandboxMode) -> Result<(), DisallowedValue> {
        self.check_sandbox(SandboxRequirement::from(wanted))
    }

    pub fn check_sandbox_policy(&self, wanted: &SandboxPolicy) -> Result<(), DisallowedValue> {
        self.check_sandbox(SandboxRequirement::from(wanted))
    }

    fn check_sandbox(&self, wanted: SandboxRequirement) -> Result<(), DisallowedValue> {
        match &self.sandbox_modes {
            Some(required) if !required.value.contains(&wanted) => {
                let allowed: Vec<_> = required.value.iter().map(|mode| format!("{mode:?}")).collect();
                Err(required.disallows("sandbox_mode", format!("{wanted:?}"), &allowed))
            }
            _ => Ok(()),
        }
    }

    /// Returns `wanted`, or the closest allowed mode. `disabled` is always allowed.
    pub fn web_search_mode(&self, wanted: WebSearchMode) -> WebSearchMode {
        let Some(allowed) = self.allowed_web_search() else { return wanted };
        let choices = [wanted, WebSearchMode::Cached, WebSearchMode::Live];
        choices.into_iter().find(|mode| allowed.contains(mode)).unwrap_or(WebSearchMode::Disabled)
    }

    fn allowed_web_search(&self) -> Option<Vec<WebSearchMode>> {
        let mut allowed = self.web_search_modes.as_ref()?.value.clone();
        if !allowed.contains(&WebSearchMode::Disabled) {
            allowed.push(WebSearchMode::Disabled);
        }
        Some(allowed)
    }

    /// Fails if an unknown feature is pinned, because its state cannot be guaranteed.
    pub(crate) fn check_pins(&self) -> Result<(), ConfigError> {
        let Some(Requirement { value, source }) = &self.features else { return Ok(()) };
        match value.keys().find(|name| Feature::find(name).is_none()) {
            Some(name) => Err(ConfigError::Invalid(format!("invalid `features` requirement `{name}` from {source}"))),
            None => Ok(()),
        }
    }

    /// Sets pinned features to their required state.
    pub(crate) fn pin(&self, features: &mut FeatureSet) {
        if let Some(required) = &self.features {
            features.set_named(|name| required.value.get(name).copied());
        }
    }

    /// Fails if a configuration, or a profile in it, sets a pinned feature to another state.
    pub(crate) fn check_features(&self, table: &Table) -> Result<(), DisallowedValue> {
        let Some(required) = &self.features else { return Ok(()) };
        let written = table.get("features").and_then(|features| features.as_table());
        for (name, value) in written.into_iter().flatten() {
            let (Some(feature), Some(enabled)) = (Feature::find(name), value.as_bool()) else { continue };
            let pinned = required.value.iter().find(|(pinned, _)| Feature::find(pinned) == Some(feature));
            if pinned.is_some_and(|(_, pinned)| *pinned != enabled) {
                let mut pins: Vec<_> = required.value.iter().collect();
                pins.sort_by_key(|(name, _)| Feature::find(name));
                let allowed: Vec<_> = pins.iter().map(|(name, state)| format!("{name}={state}")).collect();
                return Err(required.disallows("features", format!("features.{}={enabled}", feature.name()), &allowed));
            }
        }
        let profiles = table.get("profiles").and_then(|profiles| profiles.as_table());
        let profiles = profiles.into_iter().flatten().filter_map(|(_, profile)| profile.as_table());
        profiles.into_iter().try_for_each(|profile| self.check_features(profile))
    }

    /// Whether a server may be started: it must be listed with the same command or URL.
    pub fn allows_mcp_server(&self, name: &str, server: &McpServer) -> bool {
        let Some(required) = &self.mcp_servers else { return true };
        match (required.value.get(name), &server.transport) {
            (Some(McpIdentity::Command(expected)), McpTransport::Stdio { command, .. }) => command == expected,
            (Some(McpIdentity::Url(expected)), McpTransport::StreamableHttp { url, .. }) => url == expected,
            _ => false,
        }
    }

    /// Whether an app may be used at all.
    pub fn allows_app(&self, id: &str) -> bool {
        self.apps.get(id).copied().unwrap_or(true)
    }
}

impl<T> Requirement<T> {
    fn disallows(&self, field: &'static str, value: String, allowed: &[String]) -> DisallowedValue {
        let allowed = format!("[{}]", allowed.join(", "));
        DisallowedValue { field, value, allowed, source_name: self.source.to_string() }
    }
}

impl From<DisallowedValue> for ConfigError {
    fn from(disallowed: DisallowedValue) -> Self {
        Self::Invalid(disallowed.to_string())
    }
}

/// The name of a policy in messages.
fn approval_name(policy: &AskForApproval) -> String {
    match policy {
        AskForApproval::Untrusted => "UnlessTrusted".into(),
        AskForApproval::Granular { .. } => "Granular".into(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests;

//! `[shell_environment_policy]`: the environment of commands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShellEnvironmentPolicy {
    /// The variables that commands start from: those of loomd, a few such as `PATH`, or none. Default: `all`.
    pub inherit: Option<Inherit>,
    /// `false` removes variables whose names contain `KEY`, `SECRET` or `TOKEN`. Default: `true`.
    pub ignore_default_excludes: Option<bool>,
    /// Patterns of variables to remove (`*` and `?`, without case).
    pub exclude: Option<Vec<String>>,
    /// Variables to set.
    pub set: Option<BTreeMap<String, String>>,
    /// Patterns of the variables to keep, after all others are set. Empty: all.
    pub include_only: Option<Vec<String>>,
    /// Accepted for other programs that share the file; no effect.
    pub experimental_use_profile: Option<bool>,
}

/// The environment that a command starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Inherit {
    Core,
    #[default]
    All,
    None,
}

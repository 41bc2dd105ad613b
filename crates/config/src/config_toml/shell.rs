//! `[shell_environment_policy]`: the environment of commands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShellEnvironmentPolicy {
    pub inherit: Option<Inherit>,
    pub ignore_default_excludes: Option<bool>,
    pub exclude: Option<Vec<String>>,
    pub set: Option<BTreeMap<String, String>>,
    pub include_only: Option<Vec<String>>,
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

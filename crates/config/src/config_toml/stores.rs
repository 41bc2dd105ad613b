//! The storage of credentials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CliCredentialsStore {
    #[default]
    File,
    Keyring,
    Auto,
    /// In memory only.
    Ephemeral,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpCredentialsStore {
    /// The keyring, or else the file.
    #[default]
    Auto,
    File,
    Keyring,
}

//! `[permissions.<name>]`: what commands may access, as written. [`crate::permissions`] resolves it.

use std::collections::BTreeMap;

use loomd_protocol::{NetworkDomainPermission, NetworkUnixSocketPermission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PermissionProfile {
    /// By path: `:root`, `:minimal`, `:project_roots`, `:tmpdir`, or a file system path.
    pub filesystem: Option<BTreeMap<String, FilePermission>>,
    pub network: Option<NetworkPermissions>,
}

/// The access to a path, or to relative paths below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected `read`, `write`, `none`, or a table of those by path")]
pub enum FilePermission {
    Whole(FileAccess),
    Parts(BTreeMap<String, FileAccess>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileAccess {
    None,
    Read,
    Write,
}

/// `[permissions.<name>.network]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkPermissions {
    pub enabled: Option<bool>,
    /// Only the port of this and of `socks_url` is used.
    pub proxy_url: Option<String>,
    pub enable_socks5: Option<bool>,
    pub socks_url: Option<String>,
    pub enable_socks5_udp: Option<bool>,
    pub allow_upstream_proxy: Option<bool>,
    pub dangerously_allow_non_loopback_proxy: Option<bool>,
    pub dangerously_allow_all_unix_sockets: Option<bool>,
    pub mode: Option<NetworkMode>,
    pub domains: Option<BTreeMap<String, NetworkDomainPermission>>,
    pub unix_sockets: Option<BTreeMap<String, NetworkUnixSocketPermission>>,
    pub allow_local_binding: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Only HTTP methods without side effects.
    Limited,
    #[default]
    Full,
}

//! `[permissions.<name>]`: what commands may access, as written. [`crate::permissions`] resolves it.

use std::collections::BTreeMap;

use loomd_protocol::{NetworkDomainPermission, NetworkUnixSocketPermission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PermissionProfile {
    /// What the profile is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The profile that this one adds to: a built-in one, such as `:workspace`, or another of this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Access by path: `:root`, `:minimal`, `:project_roots`, `:tmpdir`, or a file system path.
    pub filesystem: Option<BTreeMap<String, FilePermission>>,
    /// What commands may reach.
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
    /// Whether commands reach the listed domains. Default: `false`.
    pub enabled: Option<bool>,
    /// The address of the HTTP proxy in the sandbox, of which only the port is used. Default port: 3128.
    pub proxy_url: Option<String>,
    /// Whether the proxy also speaks SOCKS5. Default: `true`.
    pub enable_socks5: Option<bool>,
    /// As `proxy_url`, for SOCKS5. Default port: 8081.
    pub socks_url: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub enable_socks5_udp: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub allow_upstream_proxy: Option<bool>,
    /// Accepted for other programs that share the file; no effect.
    pub dangerously_allow_non_loopback_proxy: Option<bool>,
    /// Whether commands may connect to unix sockets, and so to other programs of the machine.
    pub dangerously_allow_all_unix_sockets: Option<bool>,
    /// `limited` permits only HTTP methods without side effects, and so no HTTPS. Default: `full`.
    pub mode: Option<NetworkMode>,
    /// Domains, by name or pattern (`*.example.com`: subdomains; `**.example.com`: with the domain itself).
    pub domains: Option<BTreeMap<String, NetworkDomainPermission>>,
    /// Unix sockets, by path; on Linux single ones cannot be permitted.
    pub unix_sockets: Option<BTreeMap<String, NetworkUnixSocketPermission>>,
    /// Whether local and private addresses may be reached without being listed. Default: `false`.
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

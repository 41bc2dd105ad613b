//! `[experimental_network]` of `requirements.toml`.

use std::collections::BTreeMap;

use loomd_protocol::{NetworkDomainPermission, NetworkRequirements, NetworkUnixSocketPermission};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NetworkToml {
    enabled: Option<bool>,
    http_port: Option<u16>,
    socks_port: Option<u16>,
    allow_upstream_proxy: Option<bool>,
    dangerously_allow_non_loopback_proxy: Option<bool>,
    dangerously_allow_all_unix_sockets: Option<bool>,
    domains: Option<BTreeMap<String, NetworkDomainPermission>>,
    managed_allowed_domains_only: Option<bool>,
    allowed_domains: Option<Vec<String>>,
    denied_domains: Option<Vec<String>>,
    unix_sockets: Option<BTreeMap<String, NetworkUnixSocketPermission>>,
    allow_unix_sockets: Option<Vec<String>>,
    allow_local_binding: Option<bool>,
}

impl NetworkToml {
    /// Converts to the wire form. Deprecated lists become maps, and maps are listed, too.
    pub fn into_wire(self) -> Result<NetworkRequirements, String> {
        if self.domains.is_some() && (self.allowed_domains.is_some() || self.denied_domains.is_some()) {
            return Err(excluded("domains", "`allowed_domains` or `denied_domains`"));
        }
        if self.unix_sockets.is_some() && self.allow_unix_sockets.is_some() {
            return Err(excluded("unix_sockets", "`allow_unix_sockets`"));
        }
        let domains = self.domains.or_else(|| {
            let listed = |list: Option<Vec<String>>, permission| {
                list.map(|list| list.into_iter().map(|domain| (domain, permission)).collect::<Vec<_>>())
            };
            let allowed = listed(self.allowed_domains, NetworkDomainPermission::Allow);
            // A domain in both lists is denied.
            let denied = listed(self.denied_domains, NetworkDomainPermission::Deny);
            (allowed.is_some() || denied.is_some()).then(|| allowed.into_iter().chain(denied).flatten().collect())
        });
        let unix_sockets = self.unix_sockets.or_else(|| {
            let list = self.allow_unix_sockets?;
            Some(list.into_iter().map(|socket| (socket, NetworkUnixSocketPermission::Allow)).collect())
        });
        Ok(NetworkRequirements {
            enabled: self.enabled,
            http_port: self.http_port,
            socks_port: self.socks_port,
            allow_upstream_proxy: self.allow_upstream_proxy,
            dangerously_allow_non_loopback_proxy: self.dangerously_allow_non_loopback_proxy,
            dangerously_allow_all_unix_sockets: self.dangerously_allow_all_unix_sockets,
            managed_allowed_domains_only: self.managed_allowed_domains_only,
            allowed_domains: names(&domains, NetworkDomainPermission::Allow),
            denied_domains: names(&domains, NetworkDomainPermission::Deny),
            allow_unix_sockets: names(&unix_sockets, NetworkUnixSocketPermission::Allow),
            domains,
            unix_sockets,
            allow_local_binding: self.allow_local_binding,
        })
    }
}

fn excluded(field: &str, others: &str) -> String {
    format!("`experimental_network.{field}` cannot be combined with {others}")
}

/// Returns `None` instead of an empty list.
fn names<P: PartialEq>(map: &Option<BTreeMap<String, P>>, permission: P) -> Option<Vec<String>> {
    let names = map.iter().flatten().filter(|(_, found)| **found == permission).map(|(name, _)| name.clone());
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then_some(names)
}

//! The managed network: the profile's lists and the administrator's requirements, combined. The proxy enforces it.

use std::collections::BTreeMap;

use loomd_protocol::NetworkDomainPermission;

use super::Permissions;
use crate::config_toml::NetworkMode;
use crate::{ConfigError, Requirements};

/// The default port of the HTTP proxy that commands see.
const HTTP_PORT: u16 = 3128;
/// The default port of the SOCKS proxy.
const SOCKS_PORT: u16 = 8081;

/// A network that commands reach through a proxy only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedNetwork {
    /// False if an administrator forbids all network access.
    pub enabled: bool,
    pub mode: NetworkMode,
    /// By name or pattern.
    pub domains: BTreeMap<String, NetworkDomainPermission>,
    /// Whether loopback and private addresses may be reached without being listed.
    pub allow_local_binding: bool,
    /// Whether the user may approve hosts that are not listed.
    pub may_request_approval: bool,
    pub http_port: u16,
    /// `None` for HTTP only.
    pub socks_port: Option<u16>,
    /// Whether an administrator requires it; it then also applies to commands that are not sandboxed.
    pub required: bool,
}

impl ManagedNetwork {
    /// Returns `None` if neither the profile nor an administrator manages the network. `profile` is the permission
    /// profile in force.
    pub fn new(profile: Option<&Permissions>, requirements: &Requirements) -> Result<Option<Self>, ConfigError> {
        let required = requirements.network.as_ref().map(|required| &required.value);
        let network = profile.filter(|profile| profile.network_enabled()).map(|profile| profile.network.clone());
        if required.is_none() && network.is_none() {
            return Ok(None);
        }
        let network = network.unwrap_or_default();
        let only_theirs = required.and_then(|rules| rules.managed_allowed_domains_only) == Some(true);
        let mut domains = required.and_then(|rules| rules.domains.clone()).unwrap_or_default();
        for (domain, permission) in network.domains.into_iter().flatten() {
            match permission {
                NetworkDomainPermission::Deny => _ = domains.insert(domain, permission),
                NetworkDomainPermission::Allow if only_theirs => {}
                NetworkDomainPermission::Allow => _ = domains.entry(domain).or_insert(permission),
            }
        }
        if domains.get("*") == Some(&NetworkDomainPermission::Deny) {
            return Err(ConfigError::Invalid(
                "network domain `*` cannot be denied; leave it out, or set `enabled = false`".into(),
            ));
        }
        let http_port = required.and_then(|rules| rules.http_port).or(port_of(&network.proxy_url)).unwrap_or(HTTP_PORT);
        let socks_port =
            required.and_then(|rules| rules.socks_port).or(port_of(&network.socks_url)).unwrap_or(SOCKS_PORT);
        if http_port == socks_port {
            return Err(ConfigError::Invalid(format!("both network proxies are to use port {http_port}")));
        }
        let local = required.and_then(|rules| rules.allow_local_binding).or(network.allow_local_binding);
        Ok(Some(Self {
            enabled: required.and_then(|rules| rules.enabled) != Some(false),
            mode: network.mode.unwrap_or_default(),
            domains,
            allow_local_binding: local == Some(true),
            may_request_approval: !only_theirs,
            http_port,
            socks_port: (network.enable_socks5 != Some(false)).then_some(socks_port),
            required: required.is_some(),
        }))
    }

    /// Returns the domains with this permission, sorted.
    pub fn listed(&self, permission: NetworkDomainPermission) -> Vec<String> {
        self.domains.iter().filter(|(_, found)| **found == permission).map(|(domain, _)| domain.clone()).collect()
    }
}

/// Returns the port of a URL; `None` for port 0.
fn port_of(url: &Option<String>) -> Option<u16> {
    let url = url.as_deref()?.trim_end_matches('/');
    url.rsplit_once(':')?.1.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_toml::PermissionProfile;
    use crate::requirements::{RequirementSource, parse};

    fn network(profile: &str, requirements: &str) -> Result<Option<ManagedNetwork>, String> {
        let profile: PermissionProfile = toml::from_str(profile).unwrap();
        let profile = Permissions::resolve("p", &profile, None, None, &mut Vec::new()).unwrap();
        let requirements = parse(requirements, RequirementSource::Cloud).unwrap();
        ManagedNetwork::new(Some(&profile), &requirements).map_err(|error| error.to_string())
    }

    fn plain() -> ManagedNetwork {
        ManagedNetwork {
            enabled: true,
            mode: NetworkMode::Full,
            domains: BTreeMap::new(),
            allow_local_binding: false,
            may_request_approval: true,
            http_port: HTTP_PORT,
            socks_port: Some(SOCKS_PORT),
            required: false,
        }
    }

    #[test]
    fn the_network_is_managed_by_a_profile_or_a_requirement() {
        assert_eq!(network("", ""), Ok(None));
        assert_eq!(network("[network]\nenabled = false\nmode = 'limited'", ""), Ok(None));
        assert_eq!(network("[network]\nenabled = true", ""), Ok(Some(plain())));
        let required = || ManagedNetwork { required: true, ..plain() };
        assert_eq!(network("", "[experimental_network]"), Ok(Some(required())));
        let off = ManagedNetwork { enabled: false, ..required() };
        assert_eq!(network("[network]\nenabled = true", "[experimental_network]\nenabled = false"), Ok(Some(off)));
        let own = "[network]\nenabled = true\nmode = 'limited'\nproxy_url = 'http://127.0.0.1:4000/'\n\
                   enable_socks5 = false\nallow_local_binding = true";
        let expected = ManagedNetwork {
            mode: NetworkMode::Limited,
            http_port: 4000,
            socks_port: None,
            allow_local_binding: true,
            ..plain()
        };
        assert_eq!(network(own, ""), Ok(Some(expected)));
    }

    #[test]
    fn any_source_may_deny_and_managed_only_ignores_allowed_domains_of_profiles() {
        let profile = "[network]\nenabled = true\ndomains = { mine = 'allow', theirs = 'deny', never = 'allow' }";
        let domains = |only: bool| {
            let rules = format!(
                "[experimental_network]\nmanaged_allowed_domains_only = {only}\n\
                 domains = {{ theirs = 'allow', ok = 'allow', never = 'deny' }}"
            );
            let network = network(profile, &rules).unwrap().unwrap();
            let listed = |permission| network.listed(permission).join(" ");
            (
                network.may_request_approval,
                listed(NetworkDomainPermission::Allow),
                listed(NetworkDomainPermission::Deny),
            )
        };
        assert_eq!(domains(false), (true, "mine ok".into(), "never theirs".into()));
        assert_eq!(domains(true), (false, "ok".into(), "never theirs".into()));
    }

    #[test]
    fn contradictory_networks_are_refused() {
        for (text, expected) in [
            (
                "domains = { '*' = 'deny' }",
                "network domain `*` cannot be denied; leave it out, or set `enabled = false`",
            ),
            ("socks_url = 'x:3128'", "both network proxies are to use port 3128"),
        ] {
            assert_eq!(network(&format!("[network]\nenabled = true\n{text}"), ""), Err(expected.to_owned()));
        }
    }
}

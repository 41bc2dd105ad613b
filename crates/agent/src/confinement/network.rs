//! A managed network: which hosts its proxy lets a command reach, and the proxy of one command.

use loomd_config::Requirements;
use loomd_config::config_toml::NetworkMode;
use loomd_config::permissions::{ManagedNetwork, Permissions};
use loomd_exec::Environment;
use loomd_exec::sandbox::LoopbackPorts;
use loomd_policy::rules::{NetworkDecision, Rules};
use loomd_protocol::NetworkDomainPermission;
use loomd_proxy::{Domains, Mode, PatternError, Policy, Proxy};
use tokio_util::task::AbortOnDropHandle;

/// Says whether addresses of this machine and its network may be reached.
pub(crate) const ALLOW_LOCAL_BINDING: &str = "CODEX_NETWORK_ALLOW_LOCAL_BINDING";

/// Refuses a network that the permission profile and the managed requirements contradict each other about, or that
/// lists an invalid domain.
pub(crate) fn check_network(permissions: Option<&Permissions>, requirements: &Requirements) -> Result<(), String> {
    match ManagedNetwork::new(permissions, requirements).map_err(|error| error.to_string())? {
        Some(network) => proxy_policy(&network, &Rules::default()).map(drop).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Returns the lists of a network together with the user's rules about hosts.
pub(super) fn proxy_policy(network: &ManagedNetwork, rules: &Rules) -> Result<Policy, PatternError> {
    let mut allowed = network.listed(NetworkDomainPermission::Allow);
    let mut denied = network.listed(NetworkDomainPermission::Deny);
    for rule in rules.network() {
        match rule.decision {
            NetworkDecision::Allow if network.may_request_approval => allowed.push(rule.host.clone()),
            NetworkDecision::Deny => denied.push(rule.host.clone()),
            NetworkDecision::Allow | NetworkDecision::Prompt => {}
        }
    }
    let domains = Domains::new(allowed.iter().map(String::as_str), denied.iter().map(String::as_str))?;
    let mode = match network.mode {
        NetworkMode::Limited => Mode::Limited,
        NetworkMode::Full => Mode::Full,
    };
    Ok(Policy { domains, mode, allow_local: network.allow_local_binding })
}

/// Sets the variables that name the proxy.
pub(super) fn set_variables(network: &ManagedNetwork, env: &mut Environment) {
    for (name, value) in loomd_proxy::variables(network.http_port, network.socks_port) {
        env.set(name, value);
    }
    env.set(ALLOW_LOCAL_BINDING, if network.allow_local_binding { "1" } else { "0" });
}

pub(super) fn ports(network: &ManagedNetwork) -> Vec<u16> {
    [network.http_port].into_iter().chain(network.socks_port).collect()
}

/// Serves a command until it has ended or the handle is dropped.
pub(super) fn serve(proxy: Proxy, doors: LoopbackPorts) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        // Fails only when the command was never started.
        let Ok(listeners) = doors.open().await else { return };
        let mut listeners = listeners.into_iter();
        let (Some(http), socks) = (listeners.next(), listeners.next()) else { return };
        tokio::select! {
            () = proxy.serve(http, socks) => {}
            () = doors.closed() => {}
        }
    }))
}

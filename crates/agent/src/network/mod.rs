//! How a command is confined and reaches the network: not at all, freely, or only through a proxy that knows which
//! hosts are listed and asks about the others. A proxy runs for one command, from its start to its end.

mod client;
mod decider;
mod hosts;

use std::sync::Arc;
use std::time::Duration;

use loomd_config::Requirements;
use loomd_config::config_toml::NetworkMode;
use loomd_config::permissions::{ManagedNetwork, Permissions};
use loomd_exec::rules::{NetworkDecision, Rules};
use loomd_exec::sandbox::{Doors, Sandbox, network_disabled};
use loomd_exec::{Command, Environment};
use loomd_protocol::{NetworkAccess, NetworkDomainPermission, SandboxPolicy};
use loomd_proxy::{Domains, Mode, PatternError, Policy, Proxy};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::settings::{Profile, Settings};
use crate::tools::ToolCx;
pub use client::lay_for_client;
use decider::Gatekeeper;
pub(crate) use hosts::Hosts;

/// Whether this machine and its network may be reached, for programs that want to know beforehand.
pub(crate) const ALLOW_LOCAL_BINDING: &str = "CODEX_NETWORK_ALLOW_LOCAL_BINDING";

/// What is wrong with the network that a permission profile and an administrator make together, if anything.
pub fn check_network(permissions: Option<&Permissions>, requirements: &Requirements) -> Result<(), String> {
    match ManagedNetwork::new(permissions, requirements).map_err(|error| error.to_string())? {
        Some(network) => policy(&network, &Rules::default()).map(drop).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// The network that commands reach through a proxy, if that is how they do.
pub(crate) fn managed(settings: &Settings, profile: &Profile) -> Result<Option<ManagedNetwork>, String> {
    ManagedNetwork::new(settings.permissions.as_deref(), &profile.config.requirements)
        .map_err(|error| error.to_string())
}

/// The lists of a network, and what the rules of the user add to them.
fn policy(network: &ManagedNetwork, rules: &Rules) -> Result<Policy, PatternError> {
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

/// Tells programs where the proxy is.
fn set_variables(network: &ManagedNetwork, env: &mut Environment) {
    for (name, value) in loomd_proxy::variables(network.http_port, network.socks_port) {
        env.set(name, value);
    }
    env.set(ALLOW_LOCAL_BINDING, if network.allow_local_binding { "1" } else { "0" });
}

fn ports(network: &ManagedNetwork) -> Vec<u16> {
    [network.http_port].into_iter().chain(network.socks_port).collect()
}

/// Serves a command until it has ended, or this is dropped.
fn serve(proxy: Proxy, doors: Doors) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        // A command that was never confined never ran.
        let Ok(listeners) = doors.open().await else { return };
        let mut listeners = listeners.into_iter();
        let (Some(http), socks) = (listeners.next(), listeners.next()) else { return };
        tokio::select! {
            () = proxy.serve(http, socks) => {}
            () = doors.closed() => {}
        }
    }))
}

/// How one command runs.
pub(crate) struct Route {
    /// `None`: unconfined.
    sandbox: Option<Sandbox>,
    /// The only way to the network, where there is such.
    managed: Option<ManagedNetwork>,
    network_disabled: bool,
}

impl Route {
    /// For a command of the model. What an administrator says of the network holds without a sandbox, too.
    pub fn of_model(cx: &ToolCx, sandbox: Option<&Sandbox>) -> Result<Self, String> {
        let settings = &cx.turn.settings;
        let external =
            matches!(settings.sandbox, SandboxPolicy::ExternalSandbox { .. }) && settings.permissions.is_none();
        let managed = managed(settings, &cx.turn.profile)?.filter(|network| match sandbox {
            Some(sandbox) => network.required || sandbox.network_disabled(),
            None => network.required && !external,
        });
        let network_disabled = match (&managed, sandbox) {
            (Some(network), _) => !network.enabled || network_disabled(&settings.sandbox),
            (None, Some(sandbox)) => sandbox.network_disabled(),
            // Whoever confines commands from outside keeps the promise of its own policy.
            (None, None) => {
                settings.sandbox == SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted }
            }
        };
        let mut sandbox = sandbox.cloned();
        if managed.is_some() {
            sandbox.get_or_insert_with(Sandbox::of_network_only).deny_network();
        }
        Ok(Self { sandbox, managed: managed.filter(|network| network.enabled), network_disabled })
    }

    /// For a command of the user, who may do everything.
    pub fn of_user(cx: &ToolCx) -> Self {
        let restricted = SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted };
        Self { sandbox: None, managed: None, network_disabled: cx.turn.settings.sandbox == restricted }
    }

    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    pub fn network_disabled(&self) -> bool {
        self.network_disabled
    }

    /// Whether the command is kept from files.
    pub fn confines_files(&self) -> bool {
        self.sandbox.as_ref().is_some_and(Sandbox::confines_files)
    }

    pub fn set_variables(&self, env: &mut Environment) {
        if let Some(network) = &self.managed {
            set_variables(network, env);
        }
    }

    /// The command as it is started, and the line that serves it, if it has one.
    pub fn lay(self, cx: &ToolCx, command: Command) -> Result<(Command, Option<Line>), String> {
        let Some(sandbox) = self.sandbox else { return Ok((command, None)) };
        let Some(network) = self.managed else {
            let command = sandbox.wrap(&command, None).map_err(|error| error.to_string())?;
            return Ok((command, None));
        };
        let rules = cx.guard.rules(&cx.turn.profile.config_folders)?;
        let policy = policy(&network, &rules).map_err(|error| error.to_string())?;
        let wrapped = sandbox.wrap_with_doors(&command, None, &ports(&network));
        let (command, doors) = wrapped.map_err(|error| error.to_string())?;
        Ok((command, Some(Line::new(cx, network, policy, doors))))
    }
}

/// A command's way to the network. Dropped, it is closed.
pub(crate) struct Line {
    gatekeeper: Arc<Gatekeeper>,
    open_questions: watch::Receiver<usize>,
    serving: AbortOnDropHandle<()>,
}

impl Line {
    fn new(cx: &ToolCx, network: ManagedNetwork, policy: Policy, doors: Doors) -> Self {
        let (asking, open_questions) = watch::channel(0);
        let gatekeeper = Arc::new(Gatekeeper::new(cx, network.may_request_approval, asking));
        let proxy = Proxy::new(policy, Arc::clone(&gatekeeper) as _);
        Self { gatekeeper, open_questions, serving: serve(proxy, doors) }
    }

    /// Leaves the line open as long as the command runs.
    pub fn leave(self) {
        self.serving.detach();
    }

    /// What was last kept from the command, in words for the model.
    pub fn refusal(&self) -> Option<String> {
        self.gatekeeper.refusal()
    }

    /// Resolves when a command has had its time; that in which somebody was being asked does not count.
    pub async fn time_is_up(&self, after: Duration) {
        time_is_up(self.open_questions.clone(), after).await;
    }
}

async fn time_is_up(mut open_questions: watch::Receiver<usize>, after: Duration) {
    let mut left = after;
    loop {
        let nobody_asks = open_questions.wait_for(|open| *open == 0).await.is_ok();
        let begun = Instant::now();
        let asked = open_questions.wait_for(|open| *open > 0);
        if !nobody_asks || timeout(left, asked).await.is_err() {
            return;
        }
        left = left.saturating_sub(begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_while_somebody_is_asked() {
        let (asking, open) = watch::channel(0);
        let begun = Instant::now();
        let questions = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(2)).await;
                asking.send_replace(1);
                tokio::time::sleep(Duration::from_secs(100)).await;
                asking.send_replace(0);
            }
        };
        tokio::join!(time_is_up(open, Duration::from_secs(10)), questions);
        assert_eq!(begun.elapsed().as_secs(), 310);
    }
}

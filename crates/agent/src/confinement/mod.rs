//! How commands are confined: the only place that turns a sandbox policy or permission profile, managed requirements
//! and granted permissions into the sandbox, the network and the environment of a command. Commands of the model and
//! of clients (`command/exec`) go through it alike.

mod client;
mod launch;
mod network;
mod policy;

use loomd_config::permissions::{ManagedNetwork, Permissions};
use loomd_config::{Feature, Settings};
use loomd_exec::sandbox::{ResourceLimits, Sandbox, Surroundings};
use loomd_protocol::SandboxPolicy;

use crate::grants::Grants;

pub use client::{ClientCommand, not_spawned};
pub(crate) use client::{ClientSurroundings, launch_for_client};
pub(crate) use launch::{Launch, VariableRequest};
pub(crate) use network::{ALLOW_LOCAL_BINDING, check_network};
pub(crate) use policy::CommandPolicy;

/// The rules that hold for commands. A permission profile is enforced instead of `policy`, which is then only its
/// closest form on the wire.
#[derive(Clone, Copy)]
pub(crate) struct Confinement<'a> {
    pub policy: &'a SandboxPolicy,
    pub permissions: Option<&'a Permissions>,
    /// Limits, features, managed requirements and the variables that hold credentials.
    pub config: &'a Settings,
}

impl Confinement<'_> {
    /// Returns the sandbox of commands with `grants` added; `None` when there is nothing to enforce.
    pub fn sandbox<'a>(
        &self,
        surroundings: Surroundings,
        grants: impl IntoIterator<Item = &'a Grants>,
    ) -> Option<Sandbox> {
        let sandbox = match self.permissions {
            Some(permissions) => Sandbox::of_permissions(permissions, surroundings),
            None => Sandbox::new(self.policy, surroundings)?,
        };
        let mut sandbox = sandbox.with_limits(self.limits());
        for grants in grants {
            grants.apply(&mut sandbox);
        }
        if self.config.features.enabled(Feature::UseLegacyLandlock) {
            sandbox = sandbox.with_landlock_only();
        }
        Some(sandbox)
    }

    /// Returns how a command is launched in `sandbox`, or without one (`None`). A network that an administrator
    /// requires holds without a sandbox, too, unless commands are confined from outside.
    pub fn launch(&self, sandbox: Option<&Sandbox>) -> Result<Launch, String> {
        let managed = self.managed_network()?.filter(|network| match sandbox {
            Some(sandbox) => network.required || sandbox.network_disabled(),
            None => network.required && !self.is_external(),
        });
        let network_disabled = match (&managed, sandbox) {
            (Some(network), _) => !network.enabled || loomd_exec::sandbox::network_disabled(self.policy),
            (None, Some(sandbox)) => sandbox.network_disabled(),
            (None, None) => self.is_restricted_outside(),
        };
        let mut sandbox = sandbox.cloned();
        if managed.is_some() {
            let network_only = || Sandbox::of_network_only().with_limits(self.limits());
            sandbox.get_or_insert_with(network_only).deny_network();
        }
        Ok(Launch { sandbox, managed: managed.filter(|network| network.enabled), network_disabled })
    }

    /// Returns how a command that the user types is launched: unconfined.
    pub fn launch_unconfined(&self) -> Launch {
        Launch { sandbox: None, managed: None, network_disabled: self.is_restricted_outside() }
    }

    /// Returns the network that commands reach only through a proxy, if there is one.
    pub fn managed_network(&self) -> Result<Option<ManagedNetwork>, String> {
        ManagedNetwork::new(self.permissions, &self.config.requirements).map_err(|error| error.to_string())
    }

    fn limits(&self) -> ResourceLimits {
        let limits = self.config.config.loomd.as_ref().and_then(|loomd| loomd.limits.as_ref());
        ResourceLimits::configured(limits)
    }

    /// Whether another program confines commands.
    fn is_external(&self) -> bool {
        self.permissions.is_none() && matches!(self.policy, SandboxPolicy::ExternalSandbox { .. })
    }

    /// Whether another program keeps commands from the network.
    fn is_restricted_outside(&self) -> bool {
        matches!(self.policy, SandboxPolicy::ExternalSandbox { .. })
            && loomd_exec::sandbox::network_disabled(self.policy)
    }
}

#[cfg(test)]
mod tests;

//! How one command is launched: its sandbox, its network and its environment.

use std::sync::Arc;

use loomd_config::config_toml::ConfigToml;
use loomd_config::permissions::ManagedNetwork;
use loomd_exec::sandbox::Sandbox;
use loomd_exec::{Command, Environment, EnvironmentRequest, NETWORK_DISABLED};
use loomd_policy::rules::Rules;
use loomd_proxy::{Decider, Proxy};
use tokio_util::task::AbortOnDropHandle;

use super::network;

/// The confinement of one command, worked out by [`Confinement`](super::Confinement).
pub(crate) struct Launch {
    /// `None`: unconfined.
    pub(super) sandbox: Option<Sandbox>,
    /// The only way to the network, where it is managed.
    pub(super) managed: Option<ManagedNetwork>,
    pub(super) network_disabled: bool,
}

/// Why a command could not be confined.
#[derive(Debug)]
pub(crate) enum LaunchError {
    Exec(loomd_exec::Error),
    /// The rules or the domains of its network.
    Network(String),
}

impl From<LaunchError> for String {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Exec(error) => error.to_string(),
            LaunchError::Network(error) => error,
        }
    }
}

/// Whose environment is made.
#[derive(Clone, Copy, Default)]
pub(crate) struct VariableRequest<'a> {
    /// `None` for a command that belongs to no thread.
    pub thread_id: Option<&'a str>,
    /// Whether the command may outlive the tool call that starts it.
    pub session: bool,
}

impl Launch {
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Returns the environment of the command. Variables with credentials are withheld from one that is kept from
    /// files.
    pub fn environment(
        &self,
        inherited: &Environment,
        config: &ConfigToml,
        request: VariableRequest<'_>,
    ) -> Environment {
        let confines_files = self.sandbox.as_ref().is_some_and(Sandbox::confines_files);
        let withheld = confines_files.then(|| config.credential_variables());
        let request = EnvironmentRequest {
            thread_id: request.thread_id,
            network_disabled: self.network_disabled,
            session: request.session,
            withheld: withheld.as_ref(),
        };
        let mut env = loomd_exec::environment(inherited, &config.shell_environment_policy, request);
        self.set_variables(&mut env);
        env
    }

    /// Sets the variables that describe the network. Called again after a client's own variables, which must not
    /// replace these.
    pub fn set_variables(&self, env: &mut Environment) {
        if self.network_disabled {
            env.set(NETWORK_DISABLED, "1");
        }
        if let Some(network) = &self.managed {
            network::set_variables(network, env);
        }
    }

    /// Returns the command as it is started and, on a managed network, the task that serves its proxy until it is
    /// dropped. `decider` decides about hosts that neither the network's lists nor `rules` mention.
    pub fn wrap(
        self,
        command: Command,
        rules: impl FnOnce() -> Result<Arc<Rules>, String>,
        decider: impl FnOnce(&ManagedNetwork) -> Arc<dyn Decider>,
    ) -> Result<(Command, Option<AbortOnDropHandle<()>>), LaunchError> {
        let Some(sandbox) = self.sandbox else { return Ok((command, None)) };
        let Some(network) = self.managed else {
            let command = sandbox.wrap(&command, None).map_err(LaunchError::Exec)?;
            return Ok((command, None));
        };
        let rules = rules().map_err(LaunchError::Network)?;
        let policy =
            network::proxy_policy(&network, &rules).map_err(|error| LaunchError::Network(error.to_string()))?;
        let (command, doors) =
            sandbox.wrap_with_ports(&command, None, &network::ports(&network)).map_err(LaunchError::Exec)?;
        let proxy = Proxy::new(policy, decider(&network));
        Ok((command, Some(network::serve(proxy, doors))))
    }
}

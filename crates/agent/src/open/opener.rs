//! What threads are opened with.

use std::sync::Arc;

use loomd_config::{ConfigError, ConfigSources, LoadRequest};
use loomd_exec::Command;
use tokio_util::task::AbortOnDropHandle;

use super::default_provider::DefaultProvider;
use super::enforcement::Enforcement;
use super::models::Models;
use crate::confinement::{ClientCommand, ClientSurroundings, CommandPolicy, launch_for_client};
use crate::refusal::Refusal;
use crate::services::Services;
use crate::working_directory::working_directory;

/// How the client that opens a thread presents itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    pub name: String,
    /// The user agent and the originator of its model calls.
    pub user_agent: String,
    pub originator: String,
    /// The protocol version, recorded with new threads and sent with model calls.
    pub protocol_version: String,
}

/// Whether a stored thread's last model and effort count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    Model,
    Nothing,
}

/// What threads are opened with, shared by all of them.
pub(crate) struct Opener {
    pub sources: Arc<ConfigSources>,
    pub services: Arc<Services>,
    pub models: Models,
    pub enforcement: Arc<Enforcement>,
    default_provider: DefaultProvider,
}

impl Opener {
    pub fn new(
        sources: Arc<ConfigSources>,
        services: Arc<Services>,
        models: Models,
        enforcement: Arc<Enforcement>,
    ) -> Self {
        Self { sources, services, models, enforcement, default_provider: DefaultProvider::default() }
    }

    /// Refuses to open a thread while the organisation's requirements are not known. Other errors of the
    /// configuration are left to [`Self::resolver`], which knows the working directory.
    pub fn check_managed(&self) -> Result<(), Refusal> {
        if matches!(*self.sources.live.managed.get(), Ok(None)) {
            return Ok(());
        }
        match loomd_config::load(&self.sources.request()) {
            Err(error @ ConfigError::Cloud(_)) => Err(config_refusal(error)),
            _ => Ok(()),
        }
    }

    /// The provider of threads that recorded none.
    pub fn default_provider(&self) -> String {
        self.default_provider.get(&self.sources)
    }

    /// Confines a client's command as the configuration of the working directory or its own policy says. The handle
    /// serves its network, if that is managed, until it is dropped.
    pub fn client_command(&self, request: ClientCommand) -> Result<(Command, Option<AbortOnDropHandle<()>>), Refusal> {
        let workspace = working_directory()?;
        let load = LoadRequest { cwd: Some(&workspace), ..self.sources.request() };
        let loaded = loomd_config::load(&load).map_err(load_refusal)?;
        let config = loomd_config::resolve(&loaded).map_err(load_refusal)?;
        let home = &self.sources.home;
        let policy = match &request.sandbox_policy {
            Some(policy) => {
                let checked = config.requirements.check_sandbox_policy(policy);
                checked.map_err(|error| Refusal::invalid(format!("invalid sandbox policy: {error}")))?;
                CommandPolicy::of_policy(policy.clone())
            }
            None => CommandPolicy::of_folder(&config, loaded.trust, home, &workspace).map_err(load_refusal)?,
        };
        let surroundings = ClientSurroundings { workspace: &workspace, home, environment: &self.services.environment };
        let launch = launch_for_client(&policy, &config, request, &surroundings)?;
        if let Some(sandbox) = launch.sandbox {
            self.enforcement.check(sandbox);
        }
        Ok((launch.command, launch.proxy))
    }
}

/// Returns the refusal for a configuration that cannot be loaded; it carries the reason why the organisation's
/// requirements are not known.
pub(super) fn config_refusal(error: ConfigError) -> Refusal {
    let message = format!("failed to load configuration: {error}");
    match error {
        ConfigError::Cloud(cause) => Refusal::RequirementsUnavailable { message, cause },
        _ => Refusal::Invalid(message),
    }
}

fn load_refusal(error: ConfigError) -> Refusal {
    Refusal::invalid(format!("failed to load configuration: {error}"))
}

//! Launching commands of clients (`command/exec`) with the configuration of the working directory.

use loomd_config::{ConfigError, LoadRequest};
use loomd_exec::Command;
use loomd_protocol::JsonObject;
use tokio_util::task::AbortOnDropHandle;

use super::opener::Opener;
use crate::confinement::{ClientCommand, ClientSurroundings, CommandPolicy, launch_for_client};
use crate::refusal::Refusal;
use crate::working_directory::{absolute, working_directory};

impl Opener {
    /// Confines a client's command as the configuration of the working directory or its own policy says. The handle
    /// serves its network, if that is managed, until it is dropped.
    pub fn client_command(&self, request: ClientCommand) -> Result<(Command, Option<AbortOnDropHandle<()>>), Refusal> {
        let workspace = working_directory()?;
        if request.permission_profile.is_some() && request.sandbox_policy.is_some() {
            return Err(Refusal::invalid("`permissionProfile` cannot be combined with `sandboxPolicy`"));
        }
        let mut own = JsonObject::new();
        if let Some(profile) = &request.permission_profile {
            own.insert("default_permissions".into(), profile.clone().into());
        }
        // A profile is about the folder that the command runs in.
        let workspace = match (&request.permission_profile, &request.cwd) {
            (Some(_), Some(cwd)) => absolute(&cwd.to_string_lossy())?,
            _ => workspace,
        };
        let load = LoadRequest { cwd: Some(&workspace), thread: Some(&own), ..self.sources.request() };
        let loaded = loomd_config::load(&load).map_err(load_refusal)?;
        let config = loomd_config::resolve(&loaded).map_err(|error| match &request.permission_profile {
            Some(_) => Refusal::invalid(format!("invalid permission profile: {error}")),
            None => load_refusal(error),
        })?;
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

fn load_refusal(error: ConfigError) -> Refusal {
    Refusal::invalid(format!("failed to load configuration: {error}"))
}

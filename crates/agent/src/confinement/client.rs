//! Commands of clients (`command/exec`), which belong to no thread. On a managed network they reach what is listed;
//! the rest is refused without an approval.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_config::Settings;
use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment};
use loomd_protocol::SandboxPolicy;
use loomd_proxy::{BlockReason, Decider, DecisionFuture, Request};
use tokio_util::task::AbortOnDropHandle;

use super::launch::{LaunchError, VariableRequest};
use super::policy::CommandPolicy;
use crate::refusal::Refusal;

/// The params of a client's command.
pub struct ClientCommand {
    pub argv: Vec<String>,
    /// `None`: the server's working directory.
    pub cwd: Option<PathBuf>,
    /// Variables that are added or, when `None`, removed.
    pub env: BTreeMap<String, Option<String>>,
    /// `None`: as configured.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The id of a permission profile. Not together with `sandbox_policy`.
    pub permission_profile: Option<String>,
}

/// Where a client's command runs. The workspace of the policy is the server's working directory, wherever the
/// command runs.
pub(crate) struct ClientSurroundings<'a> {
    pub workspace: &'a Path,
    pub home: &'a Path,
    pub environment: &'a Environment,
}

struct NoApprovals;

impl Decider for NoApprovals {
    fn decide<'a>(&'a self, _: &'a Request) -> DecisionFuture<'a> {
        Box::pin(async { Err(BlockReason::NotAllowed) })
    }
}

/// A command that is ready to be started.
pub(crate) struct ClientLaunch {
    pub command: Command,
    /// Serves the command's network until it is dropped.
    pub proxy: Option<AbortOnDropHandle<()>>,
    /// The sandbox that `command` was wrapped in.
    pub sandbox: Option<Sandbox>,
}

/// Confines a client's command. The rules of the user's home count, those of projects do not.
pub(crate) fn launch_for_client(
    policy: &CommandPolicy,
    config: &Settings,
    request: ClientCommand,
    surroundings: &ClientSurroundings<'_>,
) -> Result<ClientLaunch, Refusal> {
    let confinement = policy.confinement(config);
    let trusted = config.config.trusted_projects();
    let sandbox = confinement.sandbox(
        Surroundings {
            tmpdir: surroundings.environment.get("TMPDIR").map(Path::new),
            home: Some(surroundings.home),
            trusted: &trusted,
            ..Surroundings::new(surroundings.workspace)
        },
        [],
    );
    let launch = confinement
        .launch(sandbox.as_ref())
        .map_err(|error| Refusal::invalid(format!("failed to load configuration: {error}")))?;
    let mut env = launch.environment(surroundings.environment, &config.config, VariableRequest::default());
    for (name, value) in request.env {
        match value {
            Some(value) => env.set(name, value),
            None => _ = env.0.remove(&name),
        }
    }
    launch.set_variables(&mut env);
    let cwd = request.cwd.unwrap_or_else(|| surroundings.workspace.to_owned());
    let command = Command::new(request.argv, cwd, env);
    let sandbox = launch.sandbox().cloned();
    let rules = || {
        let loaded = loomd_policy::rules::load(&[surroundings.home]).map_err(|error| error.to_string())?;
        Ok(Arc::new(loaded.rules))
    };
    let (command, proxy) = launch.wrap(command, rules, |_| Arc::new(NoApprovals)).map_err(|error| match error {
        LaunchError::Exec(error) => not_spawned(error),
        LaunchError::Network(error) => Refusal::failed(error),
    })?;
    Ok(ClientLaunch { command, proxy, sandbox })
}

/// Returns why a client's command could not be started.
pub fn not_spawned(error: loomd_exec::Error) -> Refusal {
    use loomd_exec::Error;
    match error {
        Error::EmptyCommand => Refusal::invalid(error.to_string()),
        Error::Io(error) => Refusal::failed(format!("failed to spawn command: {error}")),
        Error::NulByte => Refusal::failed("failed to spawn command: nul byte found in provided data"),
        other => Refusal::failed(format!("failed to spawn command: {other}")),
    }
}

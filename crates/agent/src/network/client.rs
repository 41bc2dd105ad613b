//! Programs of clients on a managed network: they reach what is listed, and nobody is asked about the rest.

use std::path::Path;
use std::sync::Arc;

use loomd_config::permissions::ManagedNetwork;
use loomd_exec::Command;
use loomd_exec::sandbox::Sandbox;
use loomd_proxy::{Blocked, Decider, Deciding, Proxy, Request};
use tokio_util::task::AbortOnDropHandle;

use super::{ports, serve, set_variables};

struct NoSubscribers;

impl Decider for NoSubscribers {
    fn decide<'a>(&'a self, _: &'a Request) -> Deciding<'a> {
        Box::pin(async { Err(Blocked::NotAllowed) })
    }
}

/// The command as it is started, and what serves it as long as it is held. The rules of the user in `home` count.
pub fn lay_for_client(
    network: &ManagedNetwork,
    home: &Path,
    sandbox: &Sandbox,
    mut command: Command,
) -> Result<(Command, AbortOnDropHandle<()>), String> {
    let rules = loomd_policy::rules::load(&[home]).map_err(|error| error.to_string())?.rules;
    let policy = super::policy(network, &rules).map_err(|error| error.to_string())?;
    set_variables(network, &mut command.env);
    let wrapped = sandbox.wrap_with_doors(&command, None, &ports(network));
    let (command, doors) = wrapped.map_err(|error| error.to_string())?;
    Ok((command, serve(Proxy::new(policy, Arc::new(NoSubscribers)), doors)))
}

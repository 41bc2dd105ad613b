//! Which database: the flag, the variable or config.toml, in this order, and the password, wherever that is.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use loomd_store_postgres::{Address, BadAddress, find_password};

use crate::cli::{Overrides, TopOverrides, UsageError};
use crate::setup::Setup;

/// The variable that names the store when `--store` does not.
const STORE: &str = "LOOMD_STORE";

/// The address that `--store`, `LOOMD_STORE` or `[loomd] store` names, with its password; `None` when none does.
pub fn find(flag: Option<String>, configured: Option<&str>) -> Result<Option<Address>> {
    let Some(url) = flag.or_else(|| variable(STORE)).or_else(|| configured.map(ToOwned::to_owned)) else {
        return Ok(None);
    };
    let address: Address = url.parse().map_err(|error: BadAddress| UsageError::new(error.to_string()))?;
    if address.has_password() {
        return Ok(Some(address));
    }
    let file =
        variable("PGPASSFILE").map(PathBuf::from).or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")));
    let password = variable("PGPASSWORD").or_else(|| find_password(&file?, &address));
    Ok(Some(match password {
        Some(password) => address.with_password(&password),
        None => address,
    }))
}

/// The same for a command that needs a database. config.toml is not read when it does not matter.
pub fn required(flag: Option<String>, top: TopOverrides) -> Result<Address> {
    let configured = match flag.is_some() || variable(STORE).is_some() {
        true => None,
        false => Setup::new(&top.with(Overrides::default()))?.start.loaded.config.loomd.and_then(|own| own.store),
    };
    let missing = || UsageError::new(format!("no database: give --store URL, set {STORE}, or set `store` in [loomd]"));
    find(flag, configured.as_deref())?.ok_or_else(missing)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

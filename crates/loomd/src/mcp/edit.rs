//! Changes of the user's config.toml. Everything else in it is preserved.

use anyhow::{Result, bail};
use loomd_config::{Edit, WriteRequest, load, read, write};
use loomd_mcp::is_valid_name;
use loomd_protocol::{ConfigLayerSource, JsonValue, MergeStrategy};
use serde_json::json;

use super::args::AddServer;
use crate::cli::UsageError;
use crate::run;
use crate::setup::Setup;

/// Adds a server, or replaces the one of that name.
pub fn add(setup: &Setup, server: AddServer) -> Result<()> {
    let AddServer { name, command, env, url, bearer_token_env_var } = server;
    if !is_valid_name(&name) {
        return Err(UsageError::new(format!(
            "invalid server name '{name}': only letters, digits, `-` and `_` are allowed"
        )));
    }
    let mut table = json!({});
    if let Some(url) = url {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(UsageError::new(format!("invalid URL '{url}': expected http:// or https://")));
        }
        table["url"] = url.into();
        if let Some(variable) = bearer_token_env_var {
            table["bearer_token_env_var"] = variable.into();
        }
    } else if let Some((program, arguments)) = command.split_first() {
        table["command"] = program.as_str().into();
        if !arguments.is_empty() {
            table["args"] = arguments.into();
        }
        if !env.is_empty() {
            table["env"] = env.into_iter().map(|(name, value)| (name, JsonValue::from(value))).collect();
        }
    }
    apply(setup, &name, table)
}

/// Removes a server. Returns whether the user's file has it.
pub fn remove(setup: &Setup, name: &str) -> Result<bool> {
    let found = read(&load(&setup.sources.request())?, true)?;
    let user = found.layers.iter().flatten().find(|layer| matches!(layer.name, ConfigLayerSource::User { .. }));
    if user.and_then(|layer| layer.config.get("mcp_servers")?.get(name)).is_none() {
        return Ok(false);
    }
    apply(setup, name, JsonValue::Null)?;
    Ok(true)
}

/// Sets the table of a server; null removes it.
fn apply(setup: &Setup, name: &str, table: JsonValue) -> Result<()> {
    let Ok(quoted) = serde_json::to_string(name) else { bail!("invalid server name") };
    let key_path = format!("mcp_servers.{quoted}");
    let edits = [Edit { key_path, value: table, merge_strategy: MergeStrategy::Replace }];
    let cwd = run::folder(None)?;
    let request = WriteRequest { edits: &edits, file_path: None, expected_version: None, cwd: cwd.as_ref() };
    write(&setup.sources.request(), &request)?;
    Ok(())
}

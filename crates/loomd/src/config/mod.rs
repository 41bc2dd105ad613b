//! `loomd config`: reads, changes and checks the configuration.

mod args;
mod edit;
mod known_keys;

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use loomd_config::{LoadRequest, LoadedConfig, load, parse_key_path};
use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource, JsonValue};
use toml::{Table, Value};

pub use args::Config;
use args::ConfigCommand;
pub use edit::{user_file, write_value};
pub use known_keys::{KnownKeys, print_flag_warnings, print_warnings, unknown_keys};

use crate::cli::TopOverrides;
use crate::setup::Setup;
use crate::{generate, run};

pub fn run(top: TopOverrides, arguments: Config) -> Result<ExitCode> {
    if let ConfigCommand::Schema = arguments.command {
        return generate::config_schema().map(|()| ExitCode::SUCCESS);
    }
    let setup = Setup::new(&top.with(arguments.overrides))?;
    match arguments.command {
        ConfigCommand::Get { key, json, origin } => get(&setup, key.as_deref(), json, origin)?,
        ConfigCommand::Set { key, value } => edit::set(&setup, &key, &value)?,
        ConfigCommand::Unset { key } => edit::unset(&setup, &key)?,
        ConfigCommand::Edit => return edit::edit(&setup),
        ConfigCommand::Path => print(&format!("{}\n", user_file(&setup).display()))?,
        ConfigCommand::Schema => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration of the current folder. Unlike that of a server, it must be valid.
fn loaded(setup: &Setup) -> Result<LoadedConfig> {
    let cwd = AbsolutePathBuf::new(run::folder(None)?);
    Ok(load(&LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() })?)
}

fn get(setup: &Setup, key: Option<&str>, json: bool, origin: bool) -> Result<()> {
    let loaded = loaded(setup)?;
    let merged = loaded.stack.merged();
    let Some(key) = key else {
        let text = if json { to_json(&merged.into())? } else { toml::to_string_pretty(&merged)? };
        return print(&text);
    };
    let path = parse_key_path(key);
    let Some(value) = find(&merged, &path) else {
        KnownKeys::load()?.check(&path).map_err(|problem| anyhow!(problem))?;
        bail!("`{key}` is not set; the default applies");
    };
    let text = match value {
        value if json => to_json(value)?,
        Value::String(text) => format!("{text}\n"),
        Value::Table(table) => toml::to_string_pretty(table)?,
        other => format!("{other}\n"),
    };
    print(&text)?;
    let set_in = loaded.stack.enabled().filter(|layer| find(&layer.table, &path).is_some()).last();
    match set_in.filter(|_| origin) {
        Some(layer) => print(&format!("# {}\n", place(&layer.source))),
        None => Ok(()),
    }
}

/// The value at a path of keys.
fn find<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (last, folders) = path.split_last()?;
    folders.iter().try_fold(table, |table, key| table.get(key)?.as_table())?.get(last)
}

fn to_json(value: &Value) -> Result<String> {
    let json: JsonValue = serde_json::to_value(value)?;
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

/// Where a layer comes from.
fn place(source: &ConfigLayerSource) -> String {
    match source {
        ConfigLayerSource::User { file, .. }
        | ConfigLayerSource::System { file }
        | ConfigLayerSource::LegacyManagedConfigTomlFromFile { file } => file.display().to_string(),
        ConfigLayerSource::Project { dot_codex_folder } => dot_codex_folder.join("config.toml").display().to_string(),
        ConfigLayerSource::SessionFlags => "the command line".to_owned(),
        _ => "the administrator".to_owned(),
    }
}

fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

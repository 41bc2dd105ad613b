//! Changes of the user's config.toml. Everything else in it is preserved, and an invalid result is not written.

use std::env;
use std::io::{Write, stderr};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail};
use loomd_config::{Edit, Overrides, WriteRequest, load, parse_key_path, resolve, write};
use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource, JsonValue, MergeStrategy, WriteStatus};

use super::known_keys::{KnownKeys, unknown_keys};
use super::{find, print};
use crate::cli::UsageError;
use crate::run;
use crate::setup::Setup;

/// The file that `set`, `unset` and `edit` change.
pub fn user_file(setup: &Setup) -> AbsolutePathBuf {
    setup.sources.request().user_file()
}

pub fn set(setup: &Setup, key: &str, text: &str) -> Result<()> {
    let path = parse_key_path(key);
    KnownKeys::load()?.check(&path).map_err(UsageError::new)?;
    write_value(setup, key, value(text)?)?;
    print(&format!("{key} = {text}\n"))
}

/// A TOML value, or else a string, as `-c` reads it.
fn value(text: &str) -> Result<JsonValue> {
    let parsed = Overrides::parse(&[format!("value={text}")], &[], &[])?.to_json();
    parsed.get("value").cloned().context("the value is empty")
}

pub fn unset(setup: &Setup, key: &str) -> Result<()> {
    let loaded = load(&setup.sources.request())?;
    let path = parse_key_path(key);
    let user = loaded.stack.layers().iter().find(|layer| matches!(layer.source, ConfigLayerSource::User { .. }));
    if user.and_then(|layer| find(&layer.table, &path)).is_none() {
        bail!("`{key}` is not set in {}", user_file(setup).display());
    }
    write_value(setup, key, JsonValue::Null)?;
    print(&format!("{key} is not set any more\n"))
}

/// Sets a value in the user's file; null removes it. Warns if another layer overrides it.
pub fn write_value(setup: &Setup, key: &str, value: JsonValue) -> Result<()> {
    let edits = [Edit { key_path: key.to_owned(), value, merge_strategy: MergeStrategy::Replace }];
    let cwd = run::folder(None)?;
    let request = WriteRequest { edits: &edits, file_path: None, expected_version: None, cwd: cwd.as_ref() };
    let file = user_file(setup);
    let written = write(&setup.sources.request(), &request);
    let written = written.map_err(|error| anyhow!("{} was not changed: {error}", file.display()))?;
    if written.status == WriteStatus::OkOverridden {
        let why = written.overridden_metadata.map(|overridden| overridden.message).unwrap_or_default();
        _ = writeln!(stderr(), "warning: the value has no effect here: {why}");
    }
    Ok(())
}

/// Opens the file in an editor, then checks it.
pub fn edit(setup: &Setup) -> Result<ExitCode> {
    let file = user_file(setup);
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let words = shlex::split(&editor).filter(|words| !words.is_empty());
    let words = words.with_context(|| format!("invalid $EDITOR: {editor}"))?;
    let status = Command::new(&words[0]).args(&words[1..]).arg(&*file).status();
    let status = status.with_context(|| format!("cannot start the editor `{editor}`; set $EDITOR"))?;
    if !status.success() {
        bail!("the editor `{editor}` failed: {status}");
    }
    let request = setup.sources.request();
    let loaded = load(&request)?;
    resolve(&loaded).map_err(|error| anyhow!("{}: {error}", file.display()))?;
    for unknown in unknown_keys(&loaded)? {
        _ = writeln!(stderr(), "warning: {unknown}");
    }
    Ok(ExitCode::SUCCESS)
}

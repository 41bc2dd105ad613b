//! `config/value/write`, `config/batchWrite` and `skills/config/write`: edits of the user's file. They preserve everything else in it, apply
//! as a whole or not at all, and do not lose concurrent changes.

mod document;
mod key_path;
mod overridden;
mod save;
mod skill_rules;

use std::io;
use std::path::Path;

use loomd_protocol::{
    AbsolutePathBuf, ConfigEdit, ConfigWriteResponse, JsonObject, JsonValue, MergeStrategy, WriteStatus,
};
use thiserror::Error;
use toml::Table;
use toml_edit::DocumentMut;

use crate::file::SourceFile;
use crate::load::{load_with, user_layer};
use crate::{ConfigError, ConfigToml, LayerStack, LoadRequest, resolve};
pub use key_path::parse as parse_key_path;
use save::{Lock, SaveOutcome, replace};
pub use skill_rules::SkillRuleTarget;

/// How often an edit is repeated because another program wrote the file meanwhile.
const MAX_ATTEMPTS: usize = 100;

/// One change.
pub type Edit = ConfigEdit;

/// Changes that are applied together.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    pub edits: &'a [Edit],
    /// The file that the client means; only the user's is accepted.
    pub file_path: Option<&'a str>,
    /// The version that the client has read.
    pub expected_version: Option<&'a str>,
    /// The server's working directory.
    pub cwd: &'a Path,
}

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error("Only writes to the user config are allowed")]
    Readonly,
    #[error("Configuration was modified since last read. Fetch latest version and retry.")]
    Conflict { version: String },
    #[error("{0}")]
    Validation(String),
    #[error("cannot set value on non-table parent")]
    NotATable,
    #[error("Path not found")]
    PathNotFound,
    /// The existing file cannot be loaded.
    #[error("failed to load configuration: {0}")]
    Load(ConfigError),
    #[error("failed to write configuration: {0}")]
    Io(#[from] io::Error),
}

impl WriteError {
    /// The error code for clients; `None` for internal errors.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Readonly => Some("configLayerReadonly"),
            Self::Conflict { .. } => Some("configVersionConflict"),
            Self::Validation(_) | Self::NotATable => Some("configValidationError"),
            Self::PathNotFound => Some("configPathNotFound"),
            Self::Load(_) | Self::Io(_) => None,
        }
    }
}

/// Edits the user's file. `request` has no working directory: project layers do not matter here.
pub fn write(request: &LoadRequest<'_>, write: &WriteRequest<'_>) -> Result<ConfigWriteResponse, WriteError> {
    let file_path = check_file(request, write)?;
    let _lock = Lock::take(request.home)?;
    for _ in 0..MAX_ATTEMPTS {
        let file = SourceFile::read(request.user_file()).map_err(WriteError::Load)?;
        let before = user_layer(request, &file).map_err(WriteError::Load)?;
        let version = before.version();
        if write.expected_version.is_some_and(|expected| expected != version) {
            return Err(WriteError::Conflict { version });
        }
        let text = edit(&file, |document| apply(document, write.edits))?;
        let new = SourceFile::with_text(file.path.clone(), text);
        let after = user_layer(request, &new).map_err(invalid)?;
        let loaded = validate(request, &file, &new, &after.table)?;
        let changed = after.table != before.table;
        if changed && replace(&file.path, file.as_read(), new.text())? == SaveOutcome::Conflict {
            continue;
        }
        let overridden = overridden::find(write.edits, &loaded.stack, &after.table);
        return Ok(ConfigWriteResponse {
            status: if overridden.is_some() { WriteStatus::OkOverridden } else { WriteStatus::Ok },
            version: after.version(),
            file_path,
            overridden_metadata: overridden,
        });
    }
    Err(io::Error::other("another program keeps changing the file").into())
}

/// Enables or disables skills in the user's file. Rules about the same target are removed; one is added if the target
/// would not be in the wanted state without it. `is_enabled` decides that from the changed configuration.
pub fn write_skill_rule(
    request: &LoadRequest<'_>,
    target: &SkillRuleTarget,
    enabled: bool,
    is_enabled: &dyn Fn(&LayerStack) -> bool,
) -> Result<(), WriteError> {
    let _lock = Lock::take(request.home)?;
    for _ in 0..MAX_ATTEMPTS {
        let file = SourceFile::read(request.user_file()).map_err(WriteError::Load)?;
        let before = user_layer(request, &file).map_err(WriteError::Load)?;
        let changed = |adds: bool| {
            let text = edit(&file, |document| {
                skill_rules::remove(document, target);
                if adds { skill_rules::append(document, target, enabled) } else { Ok(()) }
            })?;
            let new = SourceFile::with_text(file.path.clone(), text);
            let table = user_layer(request, &new).map_err(invalid)?.table;
            let loaded = validate(request, &file, &new, &table)?;
            Ok::<_, WriteError>((new, table, loaded))
        };
        let (mut new, mut table, loaded) = changed(!enabled)?;
        if enabled && !is_enabled(&loaded.stack) {
            (new, table, _) = changed(true)?;
        }
        if table == before.table || replace(&file.path, file.as_read(), new.text())? == SaveOutcome::Saved {
            return Ok(());
        }
    }
    Err(io::Error::other("another program keeps changing the file").into())
}

/// Adds the members of `wanted` that a file lacks, at any depth. Returns whether any were missing; with `dry`, nothing
/// is written.
pub fn import_missing(
    home: &AbsolutePathBuf,
    path: &AbsolutePathBuf,
    wanted: &JsonObject,
    dry: bool,
) -> Result<bool, WriteError> {
    let _lock = if dry { None } else { Some(Lock::take(home)?) };
    for _ in 0..MAX_ATTEMPTS {
        let file = SourceFile::read(path.clone()).map_err(WriteError::Load)?;
        let table = file.table().map_err(WriteError::Load)?;
        let mut missing = Vec::new();
        find_missing(&table, wanted, &mut Vec::new(), &mut missing);
        if missing.is_empty() || dry {
            return Ok(!missing.is_empty());
        }
        let mut document = parse(&file)?;
        for (path, value) in &missing {
            document::set(&mut document, path, value, MergeStrategy::Upsert)?;
        }
        if replace(path, file.as_read(), &document.to_string())? == SaveOutcome::Saved {
            return Ok(true);
        }
    }
    Err(io::Error::other("another program keeps changing the file").into())
}

/// Sets one value in a configuration file: the user's or that of a project. The result must be a valid file by itself.
pub fn set_value(
    home: &AbsolutePathBuf,
    path: &AbsolutePathBuf,
    key: &[String],
    value: &JsonValue,
) -> Result<(), WriteError> {
    let _lock = Lock::take(home)?;
    for _ in 0..MAX_ATTEMPTS {
        let file = SourceFile::read(path.clone()).map_err(WriteError::Load)?;
        let mut document = parse(&file)?;
        document::set(&mut document, key, value, MergeStrategy::Upsert)?;
        let text = document.to_string();
        let table = SourceFile::with_text(path.clone(), text.clone()).table().map_err(invalid)?;
        let alone: Result<ConfigToml, _> = table.try_into();
        alone.map_err(|error| WriteError::Validation(format!("Invalid configuration: {error}")))?;
        if replace(path, file.as_read(), &text)? == SaveOutcome::Saved {
            return Ok(());
        }
    }
    Err(io::Error::other("another program keeps changing the file").into())
}

fn find_missing<'a>(
    table: &Table,
    wanted: &'a JsonObject,
    path: &mut Vec<String>,
    missing: &mut Vec<(Vec<String>, &'a JsonValue)>,
) {
    for (key, value) in wanted {
        path.push(key.clone());
        match (table.get(key), value) {
            (None, value) => missing.push((path.clone(), value)),
            (Some(toml::Value::Table(table)), JsonValue::Object(wanted)) => find_missing(table, wanted, path, missing),
            // Existing values win.
            (Some(_), _) => {}
        }
        path.pop();
    }
}

/// Returns the path to report, if the client means the user's file.
fn check_file(request: &LoadRequest<'_>, write: &WriteRequest<'_>) -> Result<AbsolutePathBuf, WriteError> {
    let user_file = request.user_file();
    let Some(given) = write.file_path else { return Ok(user_file) };
    let given = AbsolutePathBuf::new(write.cwd.join(given)).ok_or(WriteError::Readonly)?;
    let real = |path: &AbsolutePathBuf| {
        path.canonicalize().ok().or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))
    };
    let is_user_file = given == user_file || (real(&given).is_some() && real(&given) == real(&user_file));
    if is_user_file { Ok(given) } else { Err(WriteError::Readonly) }
}

fn parse(file: &SourceFile) -> Result<DocumentMut, WriteError> {
    file.text().parse().map_err(|error: toml_edit::TomlError| WriteError::Validation(error.to_string()))
}

/// Returns the text of the file after a change.
fn edit(
    file: &SourceFile,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), WriteError>,
) -> Result<String, WriteError> {
    let mut document = parse(file)?;
    let was_empty = document.is_empty();
    // Comments in a file without values would otherwise end up behind what is added.
    let (mut head, trailing) = (String::new(), document.trailing().clone());
    if was_empty {
        document.set_trailing("");
    }
    change(&mut document)?;
    if was_empty && document.is_empty() {
        document.set_trailing(trailing);
    } else if was_empty {
        head = file.text().trim_end().to_owned() + "\n";
    }
    Ok(head.trim_start().to_owned() + &document.to_string())
}

/// Applies edits in order.
fn apply(document: &mut DocumentMut, edits: &[Edit]) -> Result<(), WriteError> {
    for edit in edits {
        if edit.key_path.trim().is_empty() {
            return Err(WriteError::Validation("keyPath must not be empty".into()));
        }
        let path = key_path::parse(&edit.key_path);
        match &edit.value {
            JsonValue::Null => document::remove(document, &path)?,
            value => document::set(document, &path, value, edit.merge_strategy)?,
        }
    }
    Ok(())
}

/// Checks the new file by itself and with the other layers. It must not break a configuration that worked.
fn validate(
    request: &LoadRequest<'_>,
    before: &SourceFile,
    after: &SourceFile,
    table: &Table,
) -> Result<crate::LoadedConfig, WriteError> {
    let alone: Result<ConfigToml, _> = table.clone().try_into();
    alone.map_err(|error| WriteError::Validation(format!("Invalid configuration: {error}")))?;
    let loaded = load_with(request, after.clone()).map_err(invalid)?;
    let disallowed = loaded.requirements.check_features(table);
    disallowed.map_err(|error| WriteError::Validation(format!("Invalid configuration: {error}")))?;
    // Files that it names may be created later; profiles and providers are in this file.
    if let Err(error @ (ConfigError::UnknownProfile(_) | ConfigError::UnknownProvider(_))) = resolve(&loaded)
        && load_with(request, before.clone()).is_ok_and(|before| resolve(&before).is_ok())
    {
        return Err(invalid(error));
    }
    Ok(loaded)
}

fn invalid(error: ConfigError) -> WriteError {
    match error {
        ConfigError::Type { text, .. } => WriteError::Validation(format!("Invalid configuration: {text}")),
        error @ (ConfigError::UnknownProfile(_) | ConfigError::UnknownProvider(_) | ConfigError::Invalid(_)) => {
            WriteError::Validation(format!("Invalid configuration: {error}"))
        }
        error => WriteError::Load(error),
    }
}

//! [`KnownKeys`]: the keys of config.toml, from its JSON Schema, and the unknown ones of a configuration. They have no
//! effect; newer releases of other programs that share the file may know them.

use std::io::{Write, stderr};

use anyhow::Result;
use loomd_config::{Feature, LoadedConfig};
use loomd_protocol::{ConfigLayerSource, JsonObject, JsonValue};

use super::place;
use crate::recorded::Recorded;
use crate::setup::Setup;
use crate::suggest::{did_you_mean, nearest};

/// How many unknown keys are printed before a turn; `loomd doctor` lists all.
const MAX_WARNINGS: usize = 5;

pub struct KnownKeys {
    schema: JsonValue,
}

impl KnownKeys {
    pub fn load() -> Result<Self> {
        Ok(Self { schema: Recorded::config_toml()? })
    }

    /// Refuses an unknown key, with the closest known one.
    pub fn check(&self, path: &[String]) -> Result<(), String> {
        let nested =
            path.iter().rev().fold(JsonValue::Null, |value, key| JsonObject::from_iter([(key.clone(), value)]).into());
        match self.unknown(&nested).pop() {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    /// Describes each unknown key.
    fn unknown(&self, config: &JsonValue) -> Vec<String> {
        let mut found = Vec::new();
        self.walk(&[&self.schema], config, &mut Vec::new(), &mut found);
        found
    }

    /// `schemas` are alternatives for the value.
    fn walk(&self, schemas: &[&JsonValue], value: &JsonValue, path: &mut Vec<String>, found: &mut Vec<String>) {
        let schemas = self.alternatives(schemas);
        match value {
            JsonValue::Object(members) => {
                for (key, value) in members {
                    let is_feature = path.last().is_some_and(|last| last == "features") && path.len() != 2;
                    path.push(key.clone());
                    let inner: Vec<_> = schemas.iter().filter_map(|schema| member(schema, key)).collect();
                    if is_feature {
                        self.check_feature(key, path, found);
                    } else if inner.is_empty() && !schemas.is_empty() {
                        found.push(unknown(path, &schemas));
                    } else {
                        self.walk(&inner, value, path, found);
                    }
                    path.pop();
                }
            }
            JsonValue::Array(items) => {
                let inner: Vec<_> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
                items.iter().for_each(|item| self.walk(&inner, item, path, found));
            }
            _ => {}
        }
    }

    fn check_feature(&self, name: &str, path: &[String], found: &mut Vec<String>) {
        if Feature::find(name).is_none() {
            let near = did_you_mean(name, Feature::ALL.iter().map(|feature| feature.name()));
            found.push(format!("unknown feature `{}`{near}", path.join(".")));
        }
    }

    /// The objects and lists among the alternatives, with references resolved.
    fn alternatives<'a>(&'a self, schemas: &[&'a JsonValue]) -> Vec<&'a JsonValue> {
        let mut open: Vec<&JsonValue> = schemas.to_vec();
        let mut all = Vec::new();
        while let Some(schema) = open.pop() {
            if let Some(reference) = schema.get("$ref").and_then(JsonValue::as_str) {
                open.extend(self.schema.pointer(reference.trim_start_matches('#')));
            }
            for list in ["anyOf", "oneOf", "allOf"] {
                open.extend(schema.get(list).and_then(JsonValue::as_array).into_iter().flatten());
            }
            let is_container = schema.get("properties").or(schema.get("additionalProperties")).or(schema.get("items"));
            all.extend(is_container.map(|_| schema));
        }
        all
    }
}

/// The schema of a member; `None` if an object must not have it.
fn member<'a>(schema: &'a JsonValue, key: &str) -> Option<&'a JsonValue> {
    let known = schema.get("properties").and_then(|properties| properties.get(key));
    known.or_else(|| schema.get("additionalProperties").filter(|more| **more != JsonValue::Bool(false)))
}

fn unknown(path: &[String], schemas: &[&JsonValue]) -> String {
    let (last, above) = path.split_last().map_or(("", [].as_slice()), |(last, above)| (last.as_str(), above));
    let known = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
    let near = nearest(last, known.flat_map(JsonObject::keys).map(String::as_str));
    let shown = path.join(".");
    match near {
        Some(near) => {
            let near: Vec<_> = above.iter().map(String::as_str).chain([near]).collect();
            format!("unknown key `{shown}`; did you mean `{}`?", near.join("."))
        }
        None => format!("unknown key `{shown}`"),
    }
}

/// Describes the unknown keys of all layers, with their file.
pub fn unknown_keys(loaded: &LoadedConfig) -> Result<Vec<String>> {
    let layers: Vec<_> = loaded.stack.enabled().filter(|layer| !layer.table.is_empty()).collect();
    if layers.is_empty() {
        return Ok(Vec::new());
    }
    let known = KnownKeys::load()?;
    let mut found = Vec::new();
    for layer in layers {
        let table = serde_json::to_value(&layer.table)?;
        let place = match layer.source {
            ConfigLayerSource::SessionFlags => "-c".to_owned(),
            _ => place(&layer.source),
        };
        found.extend(known.unknown(&table).into_iter().map(|problem| format!("{place}: {problem}")));
    }
    Ok(found)
}

/// Prints the first unknown keys to stderr. A configuration that cannot be checked is reported elsewhere.
pub fn print_warnings(loaded: &LoadedConfig) {
    let found = unknown_keys(loaded).unwrap_or_default();
    for problem in found.iter().take(MAX_WARNINGS) {
        _ = writeln!(stderr(), "warning: {problem}");
    }
    if found.len() > MAX_WARNINGS {
        let more = found.len() - MAX_WARNINGS;
        _ = writeln!(stderr(), "warning: {more} more unknown keys; `loomd doctor` lists them");
    }
}

/// Prints the unknown keys of `-c` to stderr.
pub fn print_flag_warnings(setup: &Setup) {
    let flags = setup.sources.flags.to_json();
    if flags.is_empty() {
        return;
    }
    let Ok(known) = KnownKeys::load() else { return };
    for problem in known.unknown(&flags.into()) {
        _ = writeln!(stderr(), "warning: -c: {problem}");
    }
}

#[cfg(test)]
mod tests {
    use loomd_config::parse_key_path;
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_keys_are_found_at_every_level_with_a_suggestion() {
        let known = KnownKeys::load().unwrap();
        for (config, problems) in [
            (json!({ "model": "x", "model_providers": { "mine": { "base_url": "u" } } }), &[][..]),
            (json!({ "modle": "x" }), &["unknown key `modle`; did you mean `model`?"]),
            (json!({ "zzz": 1 }), &["unknown key `zzz`"]),
            (
                json!({ "model_providers": { "mine": { "baseurl": "u" } } }),
                &["unknown key `model_providers.mine.baseurl`; did you mean `model_providers.mine.base_url`?"],
            ),
            (json!({ "loomd": { "recrod": "x" } }), &["unknown key `loomd.recrod`; did you mean `loomd.record`?"]),
            (
                json!({ "profiles": { "p": { "sandbox-mode": "read-only" } } }),
                &["unknown key `profiles.p.sandbox-mode`; did you mean `profiles.p.sandbox_mode`?"],
            ),
            (
                json!({ "features": { "unified_exe": true } }),
                &["unknown feature `features.unified_exe`; did you mean `unified_exec`?"],
            ),
            (json!({ "tui": { "anything": { "at": "all" } }, "agents": { "role": { "x": 1 } } }), &[]),
            (json!({ "mcp_servers": { "m": { "command": "c", "env": { "ANY": "v" } } } }), &[]),
            (json!({ "projects": { "/a": { "trust_level": "trusted" } }, "notify": ["x"] }), &[]),
            (json!({ "approval_policy": { "granular": { "rules": true } } }), &[]),
        ] {
            assert_eq!(known.unknown(&config), problems, "{config}");
        }
    }

    #[test]
    fn every_key_of_the_reference_is_known() {
        let every_key: toml::Table = include_str!("../../../config/tests/it/every_key.toml").parse().unwrap();
        let config = serde_json::to_value(every_key).unwrap();
        let unknown = KnownKeys::load().unwrap().unknown(&config);
        assert_eq!(unknown, ["unknown feature `features.future`", "unknown key `some_future_key`"]);
    }

    #[test]
    fn a_key_is_checked_by_its_path() {
        let known = KnownKeys::load().unwrap();
        let check = |key: &str| known.check(&parse_key_path(key));
        assert_eq!(check("model"), Ok(()));
        assert_eq!(check(r#"projects."/a.b".trust_level"#), Ok(()));
        assert!(check("modl").unwrap_err().contains("did you mean `model`?"));
    }
}

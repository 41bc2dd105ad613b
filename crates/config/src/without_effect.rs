//! Keys of a thread's `config` that have no effect here, so that the client can be warned.

use std::fmt;

use loomd_protocol::{JsonObject, JsonValue};
use serde::de::{self, Deserialize, Visitor};
use serde::forward_to_deserialize_any;

use crate::{ConfigToml, Feature};

/// Known keys whose behaviour is not built.
const NOT_BUILT: &[&str] = &[
    "commit_attribution",
    "ghost_snapshot",
    "js_repl_node_module_dirs",
    "js_repl_node_path",
    "memories",
    "otel",
    "plan_mode_reasoning_effort",
    "zsh_path",
];

/// Features that are not built, though they can be enabled.
const FEATURES_NOT_BUILT: &[Feature] = &[
    Feature::Undo,
    Feature::ShellZshFork,
    Feature::JsRepl,
    Feature::JsReplToolsOnly,
    Feature::CodeMode,
    Feature::CodeModeOnly,
    Feature::CodexGitCommit,
    Feature::RuntimeMetrics,
    Feature::Memories,
    Feature::ChildAgentsMd,
    Feature::ImageDetailOriginal,
    Feature::EnableFanout,
    Feature::Artifact,
    Feature::PreventIdleSleep,
];

/// A key of a thread's `config` that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutEffect {
    /// Dotted, as in the request.
    pub key: String,
    pub reason: NoEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEffect {
    Unknown,
    NotBuilt,
}

impl fmt::Display for WithoutEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            NoEffect::Unknown => "unknown",
            NoEffect::NotBuilt => "not supported",
        };
        write!(f, "`{}` ({reason})", self.key)
    }
}

/// Lists the keys without effect, in the order of the request. `null` stands for an absent key.
pub fn without_effect(config: &JsonObject) -> Vec<WithoutEffect> {
    let mut found = Vec::new();
    for (key, value) in config.iter().filter(|(_, value)| !value.is_null()) {
        match key.split_once('.') {
            None if key == "features" => {
                let features = value.as_object().into_iter().flatten();
                found.extend(features.filter_map(|(name, value)| feature(name, value)));
            }
            Some(("features", name)) => found.extend(feature(name, value)),
            split => {
                let top = split.map_or(key.as_str(), |(top, _)| top);
                let reason = match () {
                    () if NOT_BUILT.contains(&top) => NoEffect::NotBuilt,
                    () if !known_keys().contains(&top) => NoEffect::Unknown,
                    () => continue,
                };
                found.push(WithoutEffect { key: key.clone(), reason });
            }
        }
    }
    found
}

/// A feature without effect. One that is not built may be disabled.
fn feature(name: &str, value: &JsonValue) -> Option<WithoutEffect> {
    let reason = match Feature::find(name) {
        None => NoEffect::Unknown,
        Some(feature) if FEATURES_NOT_BUILT.contains(&feature) && *value == JsonValue::Bool(true) => NoEffect::NotBuilt,
        Some(_) => return None,
    };
    Some(WithoutEffect { key: format!("features.{name}"), reason })
}

/// The names of the fields of [`ConfigToml`].
fn known_keys() -> &'static [&'static str] {
    ConfigToml::deserialize(FieldNames).map_or_else(|Fields(names)| names, |_| &[])
}

/// A deserializer that only learns which fields a struct has, and returns them as its error.
struct FieldNames;

#[derive(Debug)]
struct Fields(&'static [&'static str]);

impl<'de> de::Deserializer<'de> for FieldNames {
    type Error = Fields;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fields> {
        Err(Fields(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fields> {
        Err(Fields(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fields {:?}", self.0)
    }
}

impl std::error::Error for Fields {}

impl de::Error for Fields {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(config: JsonValue, expected: &[&str]) {
        let found: Vec<_> = without_effect(config.as_object().unwrap()).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{config}");
    }

    #[test]
    fn unknown_and_unsupported_keys_are_found_and_others_are_not() {
        check(json!({}), &[]);
        check(json!({ "model": "m", "mcp_servers": {}, "sandbox_workspace_write.network_access": true }), &[]);
        check(
            json!({ "mcpServers": {}, "modle": "m", "a.b": 1 }),
            &["`mcpServers` (unknown)", "`modle` (unknown)", "`a.b` (unknown)"],
        );
        check(json!({ "modle": null }), &[]);
        check(
            json!({ "zsh_path": "/bin/zsh", "otel.environment": "e" }),
            &["`zsh_path` (not supported)", "`otel.environment` (not supported)"],
        );
    }

    #[test]
    fn features_are_checked_by_name_and_only_when_enabled() {
        check(json!({ "features.js_repl": true, "features.apps": false }), &["`features.js_repl` (not supported)"]);
        check(
            json!({ "features": { "js_repl": false, "undo": true, "nope": false } }),
            &["`features.undo` (not supported)", "`features.nope` (unknown)"],
        );
    }

    #[test]
    fn every_unsupported_key_is_a_known_one() {
        let known = known_keys();
        assert!(known.len() > 80, "{known:?}");
        assert!(NOT_BUILT.iter().all(|key| known.contains(key)));
        assert!(NOT_BUILT.is_sorted());
    }
}

//! Overrides from the command line and from a thread's `config`: dotted keys and values, merged into one table, the
//! session layer.

use std::fmt;

use loomd_protocol::JsonObject;
use thiserror::Error;
use toml::{Table, Value};

use crate::{Feature, json, stack};

/// Deeper than any key, and shallow enough for recursive code.
const MAX_SEGMENTS: usize = 64;

/// The session layer. Empty by default.
#[derive(Clone, Default, PartialEq)]
pub struct Overrides {
    table: Table,
}

impl Overrides {
    /// Parses `key=value` flags, and names of features to enable and disable. Later ones win.
    pub fn parse(flags: &[String], enable: &[String], disable: &[String]) -> Result<Self, OverrideError> {
        let mut overrides = Self::default();
        for flag in flags {
            let (key, value) = flag.split_once('=').ok_or_else(|| OverrideError::MissingEquals(flag.clone()))?;
            let key = key.trim();
            if key.is_empty() {
                return Err(OverrideError::EmptyKey(flag.clone()));
            }
            overrides.set(key, parse_value(value.trim()))?;
        }
        for (names, enabled) in [(enable, true), (disable, false)] {
            for name in names {
                Feature::find(name).ok_or_else(|| OverrideError::UnknownFeature(name.clone()))?;
                overrides.set(&format!("features.{name}"), Value::Boolean(enabled))?;
            }
        }
        Ok(overrides)
    }

    /// Returns these overrides with a thread's own ones on top. `null` has no effect.
    pub fn with_thread(&self, config: &JsonObject) -> Result<Self, OverrideError> {
        let mut overrides = self.clone();
        for (key, value) in config {
            if let Some(value) = json::to_value(value) {
                overrides.set(key, value)?;
            }
        }
        Ok(overrides)
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The table as JSON, as a thread's `config` takes it.
    pub fn to_json(&self) -> JsonObject {
        json::from_table(&self.table)
    }

    pub(crate) fn into_table(self) -> Table {
        self.table
    }

    /// Keys are split at each dot; quotes have no meaning.
    fn set(&mut self, key: &str, value: Value) -> Result<(), OverrideError> {
        if key.split('.').nth(MAX_SEGMENTS).is_some() {
            return Err(OverrideError::TooDeep);
        }
        let nested =
            key.rsplit('.').fold(value, |value, segment| Table::from_iter([(segment.to_owned(), value)]).into());
        if let Value::Table(table) = nested {
            stack::merge(&mut self.table, &table);
        }
        Ok(())
    }
}

/// Text that is not TOML is a string.
fn parse_value(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Shows keys only, because values may be secret.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.table.keys()).finish()
    }
}

/// Why an override is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OverrideError {
    #[error("Invalid override (missing '='): {0}")]
    MissingEquals(String),
    #[error("Invalid override (empty key): {0}")]
    EmptyKey(String),
    #[error("Invalid override: a key has more than {MAX_SEGMENTS} segments")]
    TooDeep,
    #[error("Unknown feature flag: {0}")]
    UnknownFeature(String),
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as JsonValue, json};

    use super::*;

    fn strings(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn check(flags: &[&str], expected: &str) {
        let overrides = Overrides::parse(&strings(flags), &[], &[]).unwrap();
        assert_eq!(*overrides.table(), expected.parse().unwrap(), "{flags:?}");
    }

    fn refused(flags: &[&str], enable: &[&str]) -> String {
        Overrides::parse(&strings(flags), &strings(enable), &[]).unwrap_err().to_string()
    }

    #[test]
    fn a_value_that_is_not_toml_is_a_string() {
        check(&["model=\"a\"", "n=5", "l=[1, 2]", "t={ x = true }"], "model = 'a'\nn = 5\nl = [1, 2]\nt.x = true");
        check(&["model=["], "model = '['");
        check(&["model=gpt-x [beta"], "model = 'gpt-x [beta'");
        check(&["model=a=b"], "model = 'a=b'");
        check(&["model="], "model = ''");
        check(&["model=1\nx = 2"], "model = \"1\\nx = 2\"");
    }

    #[test]
    fn keys_are_paths_and_later_flags_win() {
        check(&["a.b.c=1", "a.b.d=2", "a.b.c=3"], "a.b = { c = 3, d = 2 }");
        check(&["a=1", "a.b=2"], "a.b = 2");
        check(&["a.b=2", "a=1"], "a = 1");
        check(&[" model = 'x' "], "model = 'x'");
    }

    #[test]
    fn feature_switches_override_flags() {
        let overrides =
            Overrides::parse(&strings(&["features.apps=false"]), &strings(&["apps", "collab"]), &strings(&["plugins"]));
        let expected = "features = { apps = true, collab = true, plugins = false }";
        assert_eq!(*overrides.unwrap().table(), expected.parse().unwrap());
    }

    #[test]
    fn malformed_overrides_are_refused() {
        assert_eq!(refused(&["x"], &[]), "Invalid override (missing '='): x");
        assert_eq!(refused(&["=1"], &[]), "Invalid override (empty key): =1");
        assert_eq!(refused(&[], &["nope"]), "Unknown feature flag: nope");
        let deep = format!("{}=1", ["a"; MAX_SEGMENTS + 1].join("."));
        assert_eq!(refused(&[&deep], &[]), "Invalid override: a key has more than 64 segments");
    }

    #[test]
    fn thread_overrides_win_and_null_has_no_effect() {
        let flags = Overrides::parse(&strings(&["model='flag'", "features.apps=true"]), &[], &[]).unwrap();
        let JsonValue::Object(config) = json!({
            "model": "thread",
            "review_model": null,
            "sandbox_workspace_write.network_access": true,
            "features": { "plugins": false, "undo": null },
        }) else {
            unreachable!()
        };
        let expected = toml::toml! {
            model = "thread"
            features = { apps = true, plugins = false }
            sandbox_workspace_write = { network_access = true }
        };
        assert_eq!(*flags.with_thread(&config).unwrap().table(), expected);
    }
}

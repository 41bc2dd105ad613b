//! The definitions of an older release: those of this build without what only a newer release has.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::Definitions;
use super::inventory::{subjects, tag};

/// The unions of methods, which every release has.
const UNIONS: [&str; 4] = ["ClientRequest", "ServerRequest", "ServerNotification", "ClientNotification"];

/// What the inventories of two releases are about: types, fields, alternatives and values.
struct Releases {
    older: HashSet<String>,
    newer: HashSet<String>,
}

impl Releases {
    /// Whether the older release has it, or neither: then it is of this program, at every level.
    fn keep(&self, subject: &str) -> bool {
        self.older.contains(subject) || !self.newer.contains(subject)
    }
}

impl Definitions {
    /// Returns the definitions without the methods, types, fields and values that are in the inventory of the newer
    /// release only.
    pub fn of_release(mut self, older: &BTreeSet<String>, newer: &BTreeSet<String>) -> Self {
        let releases = Releases { older: subjects(older), newer: subjects(newer) };
        for (name, schema) in &mut self.types {
            prune(name, schema, &releases);
        }
        self.entries.retain(|name| UNIONS.contains(&name.as_str()) || releases.keep(name));
        let reached: BTreeSet<String> =
            self.closure(self.entries.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
        self.types.retain(|name, _| reached.contains(name) || releases.older.contains(name));
        self
    }
}

fn prune(name: &str, schema: &mut Value, releases: &Releases) {
    let Some(members) = schema.as_object_mut() else { return };
    prune_fields(name, members, releases);
    prune_values(name, members, releases);
    for keyword in ["oneOf", "anyOf"] {
        let Some(alternatives) = members.get_mut(keyword).and_then(Value::as_array_mut) else { continue };
        alternatives.retain_mut(|alternative| {
            let tagged = tag(alternative).map(|(key, value)| format!("{name}({key}={value})"));
            let Some(members) = alternative.as_object_mut() else { return true };
            match tagged {
                Some(tagged) => {
                    prune_fields(&tagged, members, releases);
                    releases.keep(&tagged)
                }
                None => {
                    prune_fields(name, members, releases);
                    prune_values(name, members, releases)
                }
            }
        });
    }
}

fn prune_fields(name: &str, members: &mut Map<String, Value>, releases: &Releases) {
    let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.retain(|field, _| releases.keep(&format!("{name}.{field}")));
    let left: HashSet<String> = properties.keys().cloned().collect();
    if let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| field.as_str().is_some_and(|field| left.contains(field)));
    }
}

/// Returns whether values are left, or there are none to choose from.
fn prune_values(name: &str, members: &mut Map<String, Value>, releases: &Releases) -> bool {
    let Some(values) = members.get_mut("enum").and_then(Value::as_array_mut) else { return true };
    values.retain(|value| releases.keep(&format!("{name} | {value}")));
    !values.is_empty()
}

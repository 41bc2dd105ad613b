//! A schema bundle as comparable lines: one per method, per field and per set of enum values. Bundles with the same
//! lines are equivalent for a client.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::{Definitions, Format, Surface};

/// The inventory of what this crate generates.
pub fn generated(surface: Surface) -> BTreeSet<String> {
    of(&Definitions::collect(surface, Format::JsonSchema))
}

/// The inventory of definitions that were collected for [`Format::JsonSchema`].
pub fn of(definitions: &Definitions) -> BTreeSet<String> {
    inventory(&super::json::bundle(definitions))
}

/// Renders both surfaces: a line per fact, marked if only the experimental surface has it.
pub fn render(stable: &BTreeSet<String>, experimental: &BTreeSet<String>) -> String {
    let line = |fact: &String| format!("{fact}{}\n", if stable.contains(fact) { "" } else { EXPERIMENTAL_MARK });
    experimental.iter().map(line).collect()
}

/// Parses the facts of one surface from the output of [`render`].
pub fn parse(text: &str, surface: Surface) -> BTreeSet<String> {
    let keep = |line: &str| match (line.strip_suffix(EXPERIMENTAL_MARK), surface) {
        (Some(_), Surface::Stable) => None,
        (fact, _) => Some(fact.unwrap_or(line).to_owned()),
    };
    text.lines().filter_map(keep).collect()
}

const EXPERIMENTAL_MARK: &str = " [experimental]";

/// What facts are about: `Type`, `Type.field`, `Type(tag=value)`, `Type(tag=value).field`, `Type | "value"`.
pub(super) fn subjects(facts: &BTreeSet<String>) -> HashSet<String> {
    let mut subjects = HashSet::new();
    for fact in facts {
        let name = match fact.split_once(" = ") {
            Some((name, _)) => name,
            None => fact.split_once(": ").map_or(fact.as_str(), |(name, _)| name.trim_end_matches('?')),
        };
        // `Type | "value"` and `Type(tag=value).field` also show that there is the type, and the alternative.
        let type_end = name.find(['.', '(', ' ']).unwrap_or(name.len());
        subjects.insert(name[..type_end].to_owned());
        if let Some(tag_end) = name.find(')').filter(|_| name[type_end..].starts_with('(')) {
            subjects.insert(name[..=tag_end].to_owned());
        }
        subjects.insert(name.to_owned());
    }
    subjects
}

/// Returns the inventory of a bundle (`codex_app_server_protocol.schemas.json`).
pub fn inventory(bundle: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let Some(definitions) = bundle.get("definitions").and_then(Value::as_object) else { return lines };
    let v2 = definitions.get("v2").and_then(Value::as_object);
    for (name, schema) in definitions.iter().chain(v2.into_iter().flatten()) {
        if name != "v2" {
            describe(name, schema, &mut lines);
        }
    }
    lines
}

fn describe(name: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    let Some(members) = schema.as_object() else {
        lines.insert(format!("{name} = {}", type_of(schema)));
        return;
    };
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|keyword| members.get(*keyword)?.as_array());
    if let Some(alternatives) = alternatives {
        for alternative in alternatives {
            match tag(alternative) {
                Some((key, value)) => fields(&format!("{name}({key}={value})"), alternative, lines),
                None if alternative.get("properties").is_some() => fields(name, alternative, lines),
                None => {
                    for kind in type_of(alternative).split(" | ") {
                        lines.insert(format!("{name} | {kind}"));
                    }
                }
            }
        }
    }
    if members.contains_key("properties") {
        fields(name, schema, lines);
    } else if alternatives.is_none() && members.contains_key("enum") {
        lines.extend(type_of(schema).split(" | ").map(|value| format!("{name} | {value}")));
    } else if alternatives.is_none() {
        lines.insert(format!("{name} = {}", type_of(schema)));
    }
}

/// One line per field: name, `?` if it may be absent, type with `null` if nullable.
fn fields(name: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = |field: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == field))
    };
    if properties.is_empty() {
        lines.insert(format!("{name} = {{}}"));
    }
    for (field, schema) in properties {
        let optional = if required(field) { "" } else { "?" };
        let nested = schema.get("properties").is_some();
        if nested {
            fields(&format!("{name}.{field}"), schema, lines);
        }
        let kind = if nested { "{...}".to_owned() } else { type_of(schema) };
        lines.insert(format!("{name}.{field}{optional}: {kind}"));
    }
}

/// The tag of an alternative: a required property with one possible value.
pub(super) fn tag(schema: &Value) -> Option<(&str, &str)> {
    let properties = schema.get("properties")?.as_object()?;
    properties.iter().find_map(|(key, property)| match property.get("enum")?.as_array()?.as_slice() {
        [Value::String(value)] => Some((key.as_str(), value.as_str())),
        _ => None,
    })
}

/// A type as sorted alternatives: `null | string`, `Turn`, `array<string>`, `"a" | "b"`.
fn type_of(schema: &Value) -> String {
    let mut alternatives = BTreeSet::new();
    collect(schema, &mut alternatives);
    alternatives.into_iter().collect::<Vec<_>>().join(" | ")
}

fn collect(schema: &Value, out: &mut BTreeSet<String>) {
    let Some(members) = schema.as_object().filter(|members| !members.is_empty()) else {
        out.insert("any".into());
        return;
    };
    if let Some(name) = members.get("$ref").and_then(Value::as_str) {
        out.insert(name.rsplit('/').next().unwrap_or(name).to_owned());
        return;
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(alternatives) = members.get(keyword).and_then(Value::as_array) {
            alternatives.iter().for_each(|alternative| collect(alternative, out));
            return;
        }
    }
    if let Some(values) = members.get("enum").and_then(Value::as_array) {
        out.extend(values.iter().map(Value::to_string));
        return;
    }
    let kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if kinds.is_empty() {
        out.insert("any".into());
    }
    for kind in kinds {
        out.insert(match kind {
            "array" => format!("array<{}>", members.get("items").map_or("any".into(), type_of)),
            "object" => match members.get("additionalProperties") {
                Some(Value::Object(values)) => format!("map<{}>", type_of(&Value::Object(values.clone()))),
                _ => "object".into(),
            },
            "integer" | "number" => members.get("format").and_then(Value::as_str).unwrap_or(kind).to_owned(),
            other => other.to_owned(),
        });
    }
}

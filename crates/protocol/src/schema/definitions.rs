//! All types of a surface by name, as flat JSON Schema definitions, with the unions of requests and notifications built
//! from the method table.

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Format, Surface};
use crate::envelope::schema as envelope;
use crate::table::{MethodInfo, Stability};
use crate::{EXPERIMENTAL_FIELDS, INITIALIZED, RequestId, client_requests, server_notifications, server_requests};

const PREFIX: &str = "#/definitions/";

/// The types of a surface. Serialisable, so that a program can carry them without the code that collects them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definitions {
    /// Every type, unions included. References between them are `#/definitions/NAME`.
    pub(super) types: BTreeMap<String, Value>,
    /// The types that get a file of their own: unions, envelopes, params, results, notifications.
    pub(super) entries: BTreeSet<String>,
}

/// Which unlisted methods the unions contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unlisted {
    Leave,
    Include,
}

impl Definitions {
    /// Collects the types of this build. Instantiates the schema code of every type, several megabytes of it: programs
    /// carry recorded definitions instead.
    pub fn collect(surface: Surface, format: Format) -> Self {
        // JSON Schemas describe what is received, TypeScript types what is sent.
        let (unlisted, contract) = match format {
            Format::JsonSchema => (Unlisted::Leave, Contract::Deserialize),
            Format::TypeScript => (Unlisted::Include, Contract::Serialize),
        };
        let mut settings = SchemaSettings::draft07();
        settings.contract = contract;
        let mut generator = settings.into_generator();
        let mut entries = BTreeSet::new();
        let mut unions = Vec::new();

        let experimental = |row: &MethodInfo| row.stability == Stability::Experimental;
        let mut experimental_entries = BTreeSet::new();
        let in_union = |row: &MethodInfo| unlisted == Unlisted::Include || row.stability != Stability::Unlisted;
        let tables = [
            ("ClientRequest", client_requests(), true),
            ("ServerRequest", server_requests(), true),
            ("ServerNotification", server_notifications(), false),
        ];
        let mut hidden: BTreeMap<String, Vec<&str>> =
            EXPERIMENTAL_FIELDS.iter().map(|(name, fields)| ((*name).to_owned(), fields.to_vec())).collect();
        for (union, rows, with_id) in tables {
            let mut alternatives = Vec::new();
            for row in &rows {
                // Deprecated client methods are in no JSON Schema; the raw notification appears only as a type.
                let old = row.stability == Stability::Unlisted && row.result.is_some();
                if old && unlisted == Unlisted::Leave {
                    continue;
                }
                let params = (row.params)(&mut generator).to_value();
                let result = row.result.map(|result| result(&mut generator).to_value());
                let names = [Some(&params), result.as_ref()].into_iter().flatten().filter_map(ref_name);
                let names: Vec<String> = names.map(str::to_owned).collect();
                if experimental(row) && surface == Surface::Stable {
                    experimental_entries.extend(names);
                    continue;
                }
                entries.extend(names);
                if let Some(name) = ref_name(&params) {
                    hidden.entry(name.to_owned()).or_default().extend(row.hidden_fields);
                }
                if in_union(row) {
                    alternatives.push(alternative(row.method, params, with_id));
                }
            }
            unions.push((union, alternatives));
        }
        let initialized = json!({
            "title": "InitializedNotification",
            "type": "object",
            "required": ["method"],
            "properties": { "method": method_property(INITIALIZED, "InitializedNotificationMethod") },
        });
        unions.push(("ClientNotification", vec![initialized]));

        entries.extend(envelopes(&mut generator));
        let mut types: BTreeMap<String, Value> = generator.take_definitions(true).into_iter().collect();
        types.retain(|name, _| !experimental_entries.contains(name));
        for (name, schema) in &mut types {
            if surface == Surface::Stable {
                hide(schema, hidden.get(name.as_str()).map_or(&[][..], Vec::as_slice));
            }
            tidy(name, schema);
        }
        for (name, alternatives) in unions {
            entries.insert(name.to_owned());
            types.insert(name.to_owned(), json!({ "oneOf": alternatives }));
        }
        Self { types, entries }
    }

    /// Returns the types that `roots` reach, including `roots`.
    pub(super) fn closure<'a>(&'a self, roots: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = roots.into_iter().collect();
        while let Some(name) = open.pop() {
            if seen.insert(name)
                && let Some(schema) = self.types.get(name)
            {
                visit_refs(schema, &mut |name| open.push(name));
            }
        }
        seen
    }
}

fn envelopes(generator: &mut SchemaGenerator) -> Vec<String> {
    [
        generator.subschema_for::<envelope::Message>(),
        generator.subschema_for::<envelope::Request>(),
        generator.subschema_for::<envelope::Notification>(),
        generator.subschema_for::<envelope::Response>(),
        generator.subschema_for::<envelope::Failure>(),
        generator.subschema_for::<crate::RpcError>(),
        generator.subschema_for::<RequestId>(),
    ]
    .into_iter()
    .filter_map(|schema| ref_name(&schema.to_value()).map(str::to_owned))
    .collect()
}

/// One alternative of a union: `{id?, method, params?}`.
fn alternative(method: &str, params: Value, with_id: bool) -> Value {
    let mut title = method.to_owned();
    title[..1].make_ascii_uppercase();
    title.push_str(if with_id { "Request" } else { "Notification" });
    let mut required = vec!["method"];
    let mut properties = serde_json::Map::new();
    properties.insert("method".into(), method_property(method, &format!("{title}Method")));
    if with_id {
        required.push("id");
        properties.insert("id".into(), json!({ "$ref": format!("{PREFIX}RequestId") }));
    }
    if ref_name(&params).is_some() {
        required.push("params");
    }
    properties.insert("params".into(), params);
    json!({ "title": title, "type": "object", "required": required, "properties": properties })
}

fn method_property(method: &str, title: &str) -> Value {
    json!({ "type": "string", "enum": [method], "title": title })
}

pub(super) fn ref_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

pub(super) fn visit_refs<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a str)) {
    if let Some(name) = ref_name(schema) {
        visit(name);
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| visit_refs(member, visit)),
        Value::Array(elements) => elements.iter().for_each(|element| visit_refs(element, visit)),
        _ => {}
    }
}

/// Removes fields from the type itself.
fn hide(schema: &mut Value, fields: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
}

/// Spells tags as code generators know them from this protocol: a one-value `enum` with a title, and a title on each
/// alternative.
fn tidy(name: &str, schema: &mut Value) {
    for keyword in ["oneOf", "anyOf"] {
        for alternative in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            title_alternative(name, alternative);
        }
    }
    constants_to_enums(schema);
}

fn title_alternative(name: &str, alternative: &mut Value) {
    let Some(members) = alternative.as_object_mut() else { return };
    let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let tag = properties.iter_mut().find_map(|(_, property)| {
        let title = pascal(property.get("const")?.as_str()?) + name;
        property.as_object_mut()?.insert("title".into(), format!("{title}Type").into());
        Some(title)
    });
    let only = (properties.len() == 1).then(|| properties.keys().next().map(|key| pascal(key) + name)).flatten();
    if let Some(title) = tag.or(only) {
        members.insert("title".into(), title.into());
    }
}

fn constants_to_enums(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(constant) = members.get("const").filter(|value| value.is_string()).cloned() {
                members.remove("const");
                members.insert("enum".into(), json!([constant]));
            }
            members.values_mut().for_each(constants_to_enums);
        }
        Value::Array(elements) => elements.iter_mut().for_each(constants_to_enums),
        _ => {}
    }
}

fn pascal(name: &str) -> String {
    name.split(['_', '-', '/'])
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
        })
        .collect()
}

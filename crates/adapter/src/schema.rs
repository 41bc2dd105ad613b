//! JSON Schemas of Rust types: as they are for params of tools, and strict for outputs.
//!
//! Providers take a strict schema only if its root is an object, every object lists all of its properties as required
//! and allows no others, and it uses a subset of the keywords.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use thiserror::Error;

/// The property that holds an output that is no object.
pub(crate) const WRAPPED: &str = "value";

/// Keywords of the subset, beside those that hold schemas.
const KEPT: &[&str] = &[
    "$ref",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "maxItems",
    "minimum",
    "minItems",
    "multipleOf",
    "pattern",
    "type",
];

/// Formats of the subset.
const FORMATS: &[&str] = &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

/// An output type that no strict schema describes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no strict schema describes the output type, at `{at}`: {reason}")]
pub struct SchemaError {
    /// Where in the schema.
    pub at: String,
    pub reason: &'static str,
}

/// A strict schema, and whether the output is wrapped in an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StrictSchema {
    pub(crate) schema: Value,
    pub(crate) wrapped: bool,
}

/// The schema of a tool's params. Definitions are inlined, as servers differ in whether they resolve references.
pub(crate) fn of_params<P: JsonSchema>() -> Value {
    let mut schema = generate::<P>();
    if let Some(members) = schema.as_object_mut() {
        // The tool has a name and a description of its own.
        members.remove("title");
        members.remove("description");
        // A struct without fields.
        if members.get("type").is_some_and(|kind| kind == "object") {
            members.entry("properties").or_insert_with(|| json!({}));
        }
    }
    schema
}

pub(crate) fn strict<T: JsonSchema>() -> Result<StrictSchema, SchemaError> {
    let mut root = generate::<T>();
    let definitions = root.as_object_mut().and_then(|members| members.remove("$defs"));
    let mut schema = strict_at(&root, "")?;
    let is_object = schema["type"] == "object";
    if !is_object {
        if refers_to_root(&schema) {
            return Err(SchemaError { at: "/".into(), reason: "a recursive type must be a struct" });
        }
        schema = json!({
            "type": "object", "properties": { WRAPPED: schema }, "required": [WRAPPED], "additionalProperties": false,
        });
    }
    if let Some(Value::Object(definitions)) = definitions {
        let strict: Result<Map<_, _>, _> = definitions
            .iter()
            .map(|(name, definition)| Ok((name.clone(), strict_at(definition, &format!("/$defs/{name}"))?)))
            .collect();
        schema["$defs"] = Value::Object(strict?);
    }
    Ok(StrictSchema { schema, wrapped: !is_object })
}

fn generate<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn strict_at(schema: &Value, at: &str) -> Result<Value, SchemaError> {
    let fail = |reason| Err(SchemaError { at: if at.is_empty() { "/".into() } else { at.to_owned() }, reason });
    let Value::Object(members) = schema else { return fail("it accepts any value") };
    if let Some(reference) = members.get("$ref") {
        // A reference has no other members.
        return Ok(json!({ "$ref": reference }));
    }
    if let Some(Value::Array(all)) = members.get("allOf") {
        let [one] = all.as_slice() else { return fail("it combines several schemas") };
        return strict_at(one, at);
    }
    if members.contains_key("prefixItems") {
        return fail("it has a tuple; use a struct");
    }
    let mut strict = Map::new();
    for (name, value) in members {
        if KEPT.contains(&name.as_str()) || name == "format" && FORMATS.iter().any(|format| value == format) {
            strict.insert(name.clone(), value.clone());
        }
    }
    if let Some(Value::Array(variants)) = members.get("anyOf").or_else(|| members.get("oneOf")) {
        let variants: Result<Vec<_>, _> =
            variants.iter().enumerate().map(|(i, variant)| strict_at(variant, &format!("{at}/anyOf/{i}"))).collect();
        strict.insert("anyOf".into(), Value::Array(variants?));
        if members.contains_key("properties") {
            return fail("it has a flattened enum");
        }
    }
    if let Some(items) = members.get("items") {
        strict.insert("items".into(), strict_at(items, &format!("{at}/items"))?);
    }
    if is_object(members) {
        if members.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
            return fail("it has a map; use a list of structs");
        }
        let mut properties = Map::new();
        if let Some(Value::Object(known)) = members.get("properties") {
            for (name, property) in known {
                properties.insert(name.clone(), strict_at(property, &format!("{at}/{name}"))?);
            }
        }
        strict.insert("required".into(), properties.keys().cloned().collect());
        strict.insert("properties".into(), Value::Object(properties));
        strict.insert("additionalProperties".into(), Value::Bool(false));
    } else if !["type", "enum", "const", "anyOf"].iter().any(|keyword| strict.contains_key(*keyword)) {
        return fail("it accepts any value");
    }
    Ok(Value::Object(strict))
}

fn is_object(members: &Map<String, Value>) -> bool {
    let named = match members.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    named || members.contains_key("properties")
}

fn refers_to_root(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| name == "$ref" && value == "#" || refers_to_root(value))
        }
        Value::Array(values) => values.iter().any(refers_to_root),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only their schemas are used")]
    struct Review {
        /// One sentence.
        summary: String,
        #[schemars(range(min = 1, max = 5))]
        score: u8,
        findings: Vec<Finding>,
        note: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only their schemas are used")]
    struct Finding {
        line: u32,
        level: Level,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code, reason = "only their schemas are used")]
    enum Level {
        Info,
        Error,
    }

    #[test]
    fn every_object_requires_all_properties_and_allows_no_others() {
        let strict = strict::<Review>().unwrap();
        assert!(!strict.wrapped);
        let expected = json!({
            "type": "object",
            "required": ["summary", "score", "findings", "note", "tags"],
            "properties": {
                "summary": { "description": "One sentence.", "type": "string" },
                "score": { "type": "integer", "minimum": 1, "maximum": 5 },
                "findings": { "type": "array", "items": {
                    "type": "object",
                    "required": ["line", "level"],
                    "properties": {
                        "line": { "type": "integer", "minimum": 0 },
                        "level": { "type": "string", "enum": ["info", "error"] },
                    },
                    "additionalProperties": false,
                } },
                "note": { "type": ["string", "null"] },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "additionalProperties": false,
        });
        assert_eq!(strict.schema, expected, "{:#}", strict.schema);
    }

    #[test]
    fn outputs_that_are_no_objects_are_wrapped_in_one() {
        let strict = strict::<Vec<Level>>().unwrap();
        assert!(strict.wrapped);
        assert_eq!(strict.schema["required"], json!(["value"]));
        assert_eq!(strict.schema["properties"]["value"]["items"]["enum"], json!(["info", "error"]));
    }

    #[derive(JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    #[allow(dead_code, reason = "only their schemas are used")]
    enum Tree {
        Leaf { value: i64 },
        Node { children: Vec<Named> },
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only their schemas are used")]
    struct Named {
        name: String,
        children: Vec<Named>,
    }

    #[test]
    fn variants_are_a_choice_and_recursive_types_are_references() {
        let strict = strict::<Tree>().unwrap();
        let choice = &strict.schema["properties"]["value"]["anyOf"];
        assert_eq!(choice.as_array().map(Vec::len), Some(2), "{:#}", strict.schema);
        let mut required: Vec<_> = choice[0]["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        required.sort_unstable();
        assert_eq!(required, ["kind", "value"]);
        assert_eq!(choice[0]["additionalProperties"], false);
        let text = strict.schema.to_string();
        assert!(text.contains("$ref") && text.contains("$defs") && !text.contains("oneOf"), "{text}");
    }

    #[test]
    fn types_that_no_strict_schema_describes_are_refused_with_their_place() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct Counts {
            by_name: BTreeMap<String, u32>,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct Loose {
            pair: (u8, String),
        }
        let at = |error: SchemaError| (error.at, error.reason);
        let map = at(strict::<Counts>().unwrap_err());
        assert_eq!(map, ("/by_name".to_owned(), "it has a map; use a list of structs"));
        assert_eq!(at(strict::<Loose>().unwrap_err()), ("/pair".to_owned(), "it has a tuple; use a struct"));
        assert_eq!(at(strict::<Value>().unwrap_err()), ("/".to_owned(), "it accepts any value"));
    }
}

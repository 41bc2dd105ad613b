//! Completes the schemas of tools that clients define.
//!
//! Providers require a type in every part of a schema, `properties` of objects and `items` of arrays, which
//! hand-written schemas leave out. Missing keywords are added; existing ones are kept.

use loomd_protocol::JsonValue;
use serde_json::{Map, json};

/// The types that a schema may name.
const TYPES: [&str; 6] = ["boolean", "string", "integer", "number", "array", "object"];

/// The type that a keyword implies where `type` is missing; the first match counts.
const HINTS: [(&[&str], &str); 4] = [
    (&["properties", "required", "additionalProperties"], "object"),
    (&["items", "prefixItems"], "array"),
    (&["enum", "const", "format"], "string"),
    (&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], "number"),
];

/// Keywords that define the type elsewhere.
const ELSEWHERE: [&str; 4] = ["anyOf", "oneOf", "allOf", "$ref"];

/// Returns the schema with all types, properties and items, or the problem with it.
pub fn complete_schema(schema: &JsonValue) -> Result<JsonValue, String> {
    let schema = match schema {
        JsonValue::Object(schema) => schema,
        JsonValue::Bool(_) => return Ok(json!({ "type": "string" })),
        JsonValue::Null => return Err("invalid type: null, expected a schema".into()),
        JsonValue::String(text) => return Err(format!("invalid type: string {text:?}, expected a schema")),
        JsonValue::Number(number) => return Err(format!("invalid type: number `{number}`, expected a schema")),
        JsonValue::Array(_) => return Err("invalid type: sequence, expected a schema".into()),
    };
    let mut complete = schema.clone();
    let kind = kind(schema)?;
    if let Some(kind) = kind {
        complete.insert("type".into(), kind.into());
    }
    match kind {
        Some("object") => {
            complete.entry("properties").or_insert_with(|| json!({}));
        }
        Some("array") => {
            complete.entry("items").or_insert_with(|| json!({ "type": "string" }));
        }
        _ => {}
    }
    if let Some(JsonValue::Object(properties)) = complete.get_mut("properties") {
        for property in properties.values_mut() {
            *property = complete_schema(property)?;
        }
    }
    if let Some(items) = complete.get_mut("items") {
        *items = match &*items {
            // One schema per position.
            JsonValue::Array(items) => items.iter().map(complete_schema).collect::<Result<_, _>>()?,
            items => complete_schema(items)?,
        };
    }
    if let Some(more) = complete.get_mut("additionalProperties")
        && !more.is_boolean()
    {
        *more = complete_schema(more)?;
    }
    Ok(JsonValue::Object(complete))
}

/// Returns the type that the schema names or implies; the first supported one of several.
fn kind(schema: &Map<String, JsonValue>) -> Result<Option<&str>, String> {
    match schema.get("type") {
        Some(JsonValue::String(name)) if TYPES.contains(&name.as_str()) => return Ok(Some(name)),
        Some(JsonValue::String(name)) => {
            let known = TYPES.map(|name| format!("`{name}`")).join(", ");
            return Err(format!("unknown variant `{name}`, expected one of {known}"));
        }
        Some(JsonValue::Array(names)) => {
            if let Some(name) = names.iter().filter_map(JsonValue::as_str).find(|name| TYPES.contains(name)) {
                return Ok(Some(name));
            }
        }
        _ => {}
    }
    let hint = HINTS.iter().find(|(keys, _)| keys.iter().any(|key| schema.contains_key(*key)));
    Ok(match hint {
        Some((_, kind)) => Some(kind),
        None if ELSEWHERE.iter().any(|key| schema.contains_key(*key)) => None,
        None => Some("string"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(schema: JsonValue, expected: JsonValue) {
        assert_eq!(complete_schema(&schema), Ok(expected), "{schema}");
    }

    #[test]
    fn missing_types_are_inferred() {
        check(json!({}), json!({ "type": "string" }));
        check(json!(true), json!({ "type": "string" }));
        check(json!({ "type": ["null", "integer"] }), json!({ "type": "integer" }));
        check(json!({ "type": ["null"] }), json!({ "type": "string" }));
        check(json!({ "required": [] }), json!({ "type": "object", "required": [], "properties": {} }));
        check(
            json!({ "prefixItems": [] }),
            json!({ "type": "array", "prefixItems": [], "items": { "type": "string" } }),
        );
        check(json!({ "const": 1 }), json!({ "type": "string", "const": 1 }));
        check(json!({ "multipleOf": 2 }), json!({ "type": "number", "multipleOf": 2 }));
        let either = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        check(either.clone(), either);
    }

    #[test]
    fn existing_keywords_are_kept() {
        check(
            json!({
                "type": ["object", "null"],
                "title": "Args",
                "properties": {
                    "city": { "enum": ["a", "b"], "description": "which" },
                    "n": { "type": "integer", "minimum": 1 },
                    "list": { "type": "array" },
                    "pairs": { "items": [true, { "type": "number" }] },
                },
                "required": ["city"],
                "additionalProperties": { "properties": {} },
            }),
            json!({
                "type": "object",
                "title": "Args",
                "properties": {
                    "city": { "type": "string", "enum": ["a", "b"], "description": "which" },
                    "n": { "type": "integer", "minimum": 1 },
                    "list": { "type": "array", "items": { "type": "string" } },
                    "pairs": { "type": "array", "items": [{ "type": "string" }, { "type": "number" }] },
                },
                "required": ["city"],
                "additionalProperties": { "type": "object", "properties": {} },
            }),
        );
    }

    #[test]
    fn invalid_schemas_are_refused() {
        let unknown = "expected one of `boolean`, `string`, `integer`, `number`, `array`, `object`";
        for (schema, expected) in [
            (json!("x"), "invalid type: string \"x\", expected a schema".to_owned()),
            (json!(null), "invalid type: null, expected a schema".into()),
            (json!(3), "invalid type: number `3`, expected a schema".into()),
            (json!([]), "invalid type: sequence, expected a schema".into()),
            (json!({ "type": "null" }), format!("unknown variant `null`, {unknown}")),
            (
                json!({ "properties": { "a": { "items": { "type": "int" } } } }),
                format!("unknown variant `int`, {unknown}"),
            ),
        ] {
            assert_eq!(complete_schema(&schema), Err(expected), "{schema}");
        }
    }

    fn any_json() -> impl Strategy<Value = JsonValue> {
        let key = prop_oneof![
            Just("type".to_owned()),
            Just("properties".to_owned()),
            Just("items".to_owned()),
            Just("additionalProperties".to_owned()),
            Just("anyOf".to_owned()),
            "[a-z]{1,3}",
        ];
        let leaf = prop_oneof![
            Just(JsonValue::Null),
            any::<bool>().prop_map(JsonValue::from),
            any::<i64>().prop_map(JsonValue::from),
            prop_oneof![Just("object"), Just("array"), Just("null"), Just("integer")].prop_map(JsonValue::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(JsonValue::from),
                prop::collection::vec((key.clone(), inner), 0..5)
                    .prop_map(|pairs| JsonValue::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn completing_a_schema_is_idempotent(schema in any_json()) {
            if let Ok(complete) = complete_schema(&schema) {
                prop_assert_eq!(complete_schema(&complete), Ok(complete));
            }
        }
    }
}

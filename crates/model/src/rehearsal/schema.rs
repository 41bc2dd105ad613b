//! Generates the simplest value that conforms to a JSON Schema.

use loomd_protocol::{JsonObject, JsonValue};

/// Schemas may be nested without end, or refer to themselves.
const MAX_DEPTH: usize = 16;

pub(super) fn instance(schema: &JsonValue) -> JsonValue {
    build(schema, schema, 0)
}

fn build(schema: &JsonValue, root: &JsonValue, depth: usize) -> JsonValue {
    if depth > MAX_DEPTH {
        return JsonValue::Null;
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        return build(target, root, depth + 1);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema[choice].get(0) {
            return build(first, root, depth + 1);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind.unwrap_or(if schema.get("properties").is_some() { "object" } else { "string" }) {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let build = |(name, schema): (&String, &JsonValue)| (name.clone(), build(schema, root, depth + 1));
            JsonValue::Object(properties.map(build).collect::<JsonObject>())
        }
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(0).min(MAX_DEPTH as u64);
            (0..count).map(|_| build(&schema["items"], root, depth + 1)).collect()
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => false.into(),
        "null" => JsonValue::Null,
        _ => "rehearsal".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generated_values_conform_to_the_schema() {
        for (schema, expected) in [
            (json!({ "type": "string" }), json!("rehearsal")),
            (json!({ "enum": ["a", "b"] }), json!("a")),
            (json!({ "type": ["integer", "null"], "minimum": 3 }), json!(3)),
            (json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 2 }), json!([false, false])),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/x" } }, "$defs": { "x": { "const": 7 } } }),
                json!({ "a": 7 }),
            ),
            (json!({ "anyOf": [{ "type": "null" }, {}] }), json!(null)),
            (json!(true), json!("rehearsal")),
        ] {
            assert_eq!(instance(&schema), expected, "{schema}");
        }
        let endless = json!({ "properties": { "a": { "$ref": "#" } } });
        assert!(instance(&endless).to_string().len() < 1000);
    }
}

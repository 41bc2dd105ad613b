//! Helpers for the specs of tools.

use loomd_model::ToolSpec;
use serde_json::{Map, Value, json};

/// A function tool. `required` names the properties that have to be there.
pub(super) fn function(name: &str, description: &str, properties: &[(&str, Value)], required: &[&str]) -> ToolSpec {
    ToolSpec::Function {
        name: name.into(),
        description: description.into(),
        strict: false,
        parameters: object(properties, required),
    }
}

pub(super) fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

pub(super) fn string(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn number(description: &str) -> Value {
    json!({ "type": "number", "description": description })
}

pub(super) fn boolean(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

pub(super) fn array(items: Value, description: &str) -> Value {
    json!({ "type": "array", "items": items, "description": description })
}

pub(super) fn one_of(values: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": values, "description": description })
}

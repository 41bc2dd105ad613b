//! The JSON Schema of `config.toml`, for editors. Generated from the types that decode the file, so it cannot deviate
//! from them.

use loomd_protocol::JsonValue;
use schemars::generate::SchemaSettings;
use serde_json::json;

use crate::{ConfigToml, Feature};

pub fn schema() -> JsonValue {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<ConfigToml>().to_value();
    without_null(&mut schema);
    close(&mut schema);
    schema["title"] = "config.toml".into();
    let features: serde_json::Map<_, _> = Feature::ALL
        .iter()
        .map(|feature| {
            let schema = json!({
                "description": feature.description().unwrap_or("No effect."),
                "type": "boolean",
                "default": feature.default_enabled(),
            });
            (feature.name().to_owned(), schema)
        })
        .collect();
    schema["properties"]["features"]["properties"] = features.into();
    schema
}

/// Forbids keys that an object does not list, unless it says otherwise.
fn close(schema: &mut JsonValue) {
    match schema {
        JsonValue::Object(members) => {
            let is_object = members.get("type") == Some(&json!("object"));
            if is_object && members.get("properties").is_some_and(JsonValue::is_object) {
                members.entry("additionalProperties").or_insert(false.into());
            }
            members.values_mut().for_each(close);
        }
        JsonValue::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Removes `null`: optional keys are absent in TOML, not null.
fn without_null(schema: &mut JsonValue) {
    match schema {
        JsonValue::Object(members) => {
            if members.get("default") == Some(&JsonValue::Null) {
                members.shift_remove("default");
            }
            for (list, null) in
                [("type", json!("null")), ("anyOf", json!({ "type": "null" })), ("enum", JsonValue::Null)]
            {
                if let Some(JsonValue::Array(choices)) = members.get_mut(list) {
                    choices.retain(|choice| *choice != null);
                    if list == "type" && choices.len() == 1 {
                        let only = choices.remove(0);
                        members.insert(list.into(), only);
                    }
                }
            }
            members.values_mut().for_each(without_null);
        }
        JsonValue::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_schema() {
        let schema = schema();
        let keys = schema["properties"].as_object().unwrap();
        let every_key: toml::Table = include_str!("../tests/it/every_key.toml").parse().unwrap();
        let missing: Vec<_> = every_key.keys().filter(|key| !keys.contains_key(*key)).collect();
        assert_eq!(missing, ["some_future_key"]);
        let apps = &schema["properties"]["features"]["properties"]["apps"];
        assert_eq!((&apps["type"], &apps["default"]), (&json!("boolean"), &json!(true)));
        assert_eq!(schema["properties"]["model"]["type"], json!("string"));
        assert!(schema.get("required").is_none(), "every key is optional");
    }

    #[test]
    fn unknown_keys_are_forbidden_except_in_tables_of_other_programs() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        for (name, allowed) in [("Loomd", false), ("ModelProvider", false), ("McpServer", false), ("Tui", true)] {
            assert_eq!(schema["definitions"][name]["additionalProperties"], json!(allowed), "{name}");
        }
    }
}

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
    schema["title"] = "config.toml".into();
    let features: serde_json::Map<_, _> =
        Feature::ALL.iter().map(|feature| (feature.name().to_owned(), json!({ "type": "boolean" }))).collect();
    schema["properties"]["features"]["properties"] = features.into();
    schema
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
        assert_eq!(schema["properties"]["features"]["properties"]["apps"], json!({ "type": "boolean" }));
        assert_eq!(schema["properties"]["model"]["type"], json!("string"));
        assert!(schema.get("required").is_none(), "every key is optional");
    }
}

//! The JSON Schema of `config.toml`, for editors that complete it. It comes from the types that the file is
//! decoded to, so it cannot say something else.

use loomd_protocol::JsonValue;
use schemars::generate::SchemaSettings;
use serde_json::json;

use crate::{ConfigToml, Feature};

pub fn schema() -> JsonValue {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<ConfigToml>().to_value();
    schema["title"] = "config.toml".into();
    let features: serde_json::Map<_, _> =
        Feature::ALL.iter().map(|feature| (feature.name().to_owned(), json!({ "type": "boolean" }))).collect();
    schema["properties"]["features"]["properties"] = features.into();
    schema
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
        assert_eq!(schema["properties"]["model"]["type"], json!(["string", "null"]));
        assert!(schema.get("required").is_none(), "every key may be left out");
    }
}

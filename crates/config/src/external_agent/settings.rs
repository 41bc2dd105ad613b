//! Maps the settings of the other agent: the environment of commands, and the sandbox mode.

use loomd_protocol::{JsonObject, JsonValue};
use serde_json::json;

use super::ImportError;

/// Returns the `config.toml` equivalent of a `settings.json`.
pub(super) fn map(text: &str) -> Result<JsonObject, ImportError> {
    let settings: JsonValue = serde_json::from_str(text).map_err(|error| ImportError::Settings(error.to_string()))?;
    let JsonValue::Object(settings) = settings else {
        return Err(ImportError::Settings("external agent settings root must be an object".into()));
    };
    let mut config = JsonObject::new();
    let variables: JsonObject = settings
        .get("env")
        .and_then(JsonValue::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let text = match value {
                JsonValue::String(text) => text.clone(),
                JsonValue::Bool(flag) => flag.to_string(),
                JsonValue::Number(number) => number.to_string(),
                _ => return None,
            };
            Some((name.clone(), text.into()))
        })
        .collect();
    if !variables.is_empty() {
        config.insert("shell_environment_policy".into(), json!({ "inherit": "core", "set": variables }));
    }
    if settings.get("sandbox").and_then(|sandbox| sandbox.get("enabled")?.as_bool()) == Some(true) {
        config.insert("sandbox_mode".into(), "workspace-write".into());
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &str, config: JsonValue) {
        assert_eq!(JsonValue::from(map(settings).unwrap()), config, "{settings}");
    }

    #[test]
    fn environment_and_sandbox_are_mapped() {
        check(
            r#"{"env": {"A": "1", "B": true, "C": 5, "D": null, "E": [1]}, "sandbox": {"enabled": true}, "model": "m"}"#,
            json!({
                "shell_environment_policy": {"inherit": "core", "set": {"A": "1", "B": "true", "C": "5"}},
                "sandbox_mode": "workspace-write",
            }),
        );
        check(r#"{"env": {"D": null}, "sandbox": {"enabled": false}}"#, json!({}));
        check("{}", json!({}));
    }

    #[test]
    fn malformed_settings_are_refused() {
        assert_eq!(map("[]").unwrap_err().to_string(), "external agent settings root must be an object");
        assert!(map("{").unwrap_err().to_string().starts_with("EOF while parsing"));
    }
}

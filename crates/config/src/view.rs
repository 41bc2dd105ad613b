//! The result of `config/read`: the merged layers, the origin of each value, and the layers themselves. Profiles are
//! listed, not applied; requirements have no influence.

use loomd_protocol::{ConfigReadResponse, JsonValue};

use crate::features::SWITCHABLE;
use crate::{ConfigError, LoadedConfig};

/// Keys that mean nothing here and that newer clients expect.
const NEWER_KEYS: [&str; 4] = ["browser_use", "computer_use", "desktop", "model_auto_compact_token_limit_scope"];

/// Builds the result. Fails if the selected profile does not exist; [`ConfigError::read_message`] words the error.
pub fn read(loaded: &LoadedConfig, include_layers: bool) -> Result<ConfigReadResponse, ConfigError> {
    let features = loaded.features()?;
    let mut config = serde_json::to_value(&loaded.config).map_err(unshowable)?;
    if let Some(JsonValue::Object(shown)) = config.get_mut("features") {
        // Always listed, because clients switch them at run time.
        shown.extend(SWITCHABLE.map(|feature| (feature.name().into(), features.enabled(feature).into())));
    }
    if let JsonValue::Object(config) = &mut config {
        // Keys of newer clients, whose values are shown as they are written.
        let merged = loaded.stack.merged();
        for key in NEWER_KEYS {
            let written = merged.get(key).map(serde_json::to_value).transpose().map_err(unshowable)?;
            config.insert(key.into(), written.unwrap_or_default());
        }
    }
    Ok(ConfigReadResponse {
        config: serde_json::from_value(config).map_err(unshowable)?,
        origins: loaded.stack.origins(&loaded.stack.merged()),
        layers: include_layers.then(|| loaded.stack.layers().iter().rev().map(|layer| layer.to_wire()).collect()),
    })
}

fn unshowable(error: serde_json::Error) -> ConfigError {
    ConfigError::Invalid(error.to_string())
}

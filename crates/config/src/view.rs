//! The answer of `config/read`: what the layers say together, where each value comes from, and the layers
//! themselves. Profiles are shown, not applied; requirements do not matter here.

use loomd_protocol::{ConfigReadResponse, JsonValue};

use crate::features::SWITCHABLE;
use crate::{ConfigError, LoadedConfig};

/// Fails when the selected profile does not exist; [`ConfigError::read_message`] has the words for it.
pub fn read(loaded: &LoadedConfig, include_layers: bool) -> Result<ConfigReadResponse, ConfigError> {
    let features = loaded.features()?;
    let mut config = serde_json::to_value(&loaded.config).map_err(unshowable)?;
    if let Some(JsonValue::Object(shown)) = config.get_mut("features") {
        // Always shown, because clients switch them at run time.
        shown.extend(SWITCHABLE.map(|feature| (feature.name().into(), features.enabled(feature).into())));
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

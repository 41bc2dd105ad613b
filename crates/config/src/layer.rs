//! One source of configuration: its origin and its content.

use std::fmt;
use std::path::Path;

use loomd_protocol::{ConfigLayer, ConfigLayerMetadata, ConfigLayerSource, JsonObject};
use sha2::{Digest as _, Sha256};
use toml::Table;

use crate::json;

/// A table and its source. Relative paths in it are resolved; unknown keys are preserved.
#[derive(Clone, PartialEq)]
pub struct Layer {
    pub source: ConfigLayerSource,
    pub table: Table,
    /// A disabled layer is listed, but has no effect.
    pub disabled_reason: Option<String>,
    /// Whether the rules and hooks next to its file are in force, too.
    pub(crate) trusts_folder: bool,
}

impl Layer {
    pub fn new(source: ConfigLayerSource, table: Table) -> Self {
        Self { source, table, disabled_reason: None, trusts_folder: true }
    }

    /// The folder whose rules and hooks are in force because this layer is.
    pub fn config_folder(&self) -> Option<&Path> {
        let folder = match &self.source {
            ConfigLayerSource::Project { dot_codex_folder } => Some(&**dot_codex_folder),
            ConfigLayerSource::System { file } | ConfigLayerSource::User { file, .. } => file.parent(),
            _ => None,
        };
        folder.filter(|_| self.is_enabled() && self.trusts_folder)
    }

    /// A table of the layer as JSON, for settings that this crate does not interpret.
    pub fn json_table(&self, key: &str) -> Option<JsonObject> {
        self.table.get(key).and_then(|value| value.as_table()).map(json::from_table)
    }

    /// The file of the layer, if it is one.
    pub fn file(&self) -> Option<std::path::PathBuf> {
        match &self.source {
            ConfigLayerSource::Project { dot_codex_folder } => Some(dot_codex_folder.join("config.toml")),
            ConfigLayerSource::System { file } | ConfigLayerSource::User { file, .. } => Some(file.to_path_buf()),
            _ => None,
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.disabled_reason.is_none()
    }

    /// The hash of the content. Comments, order and formatting do not change it.
    pub fn version(&self) -> String {
        version(&json::from_table(&self.table))
    }

    pub fn metadata(&self) -> ConfigLayerMetadata {
        ConfigLayerMetadata { name: self.source.clone(), version: self.version() }
    }

    /// The layer as `config/read` lists it.
    pub(crate) fn to_wire(&self) -> ConfigLayer {
        let config = json::from_table(&self.table);
        ConfigLayer {
            name: self.source.clone(),
            version: version(&config),
            config: config.into(),
            disabled_reason: self.disabled_reason.clone(),
        }
    }
}

/// Requires sorted keys in `config`.
fn version(config: &JsonObject) -> String {
    let text = serde_json::to_string(config).unwrap_or_default();
    let mut version = String::from("sha256:");
    for byte in Sha256::digest(text.as_bytes()) {
        version.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789abcdef"[usize::from(half)])));
    }
    version
}

/// Shows keys only, because values may be secret.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("source", &self.source)
            .field("keys", &self.table.keys().collect::<Vec<_>>())
            .field("disabled_reason", &self.disabled_reason)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(text: &str) -> Layer {
        Layer::new(ConfigLayerSource::SessionFlags, text.parse().unwrap())
    }

    #[test]
    fn the_version_of_an_empty_layer_is_the_hash_of_an_empty_object() {
        let version = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(layer("").version(), version);
    }

    #[test]
    fn the_version_depends_on_the_content_only() {
        let one = layer("b = 1\na = 'x'\n[t]\nz = true\ny = [1, 2]\n");
        let same = layer("# note\nt = { y = [1, 2], z = true }\na = \"x\"\n\nb = 1\n");
        assert_eq!(one.version(), same.version());
        assert_ne!(one.version(), layer("b = 1\na = 'x'\n[t]\nz = true\ny = [2, 1]\n").version());
    }

    #[test]
    fn debug_shows_keys_only() {
        assert_eq!(
            format!("{:?}", layer("token = \"sk-1\"")),
            "Layer { source: SessionFlags, keys: [\"token\"], disabled_reason: None }"
        );
    }
}

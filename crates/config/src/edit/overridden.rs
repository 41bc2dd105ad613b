//! Edits without effect, because another layer overrides them.

use loomd_protocol::{ConfigLayerSource, JsonValue, OverriddenMetadata};
use toml::{Table, Value};

use super::{Edit, key_path};
use crate::{LayerStack, json};

/// Returns the first edit whose value is not the effective one.
pub(super) fn find(edits: &[Edit], stack: &LayerStack, user: &Table) -> Option<OverriddenMetadata> {
    let merged = stack.merged();
    edits.iter().find_map(|edit| {
        let path = key_path::parse(&edit.key_path);
        let (written, effective) = (at(user, &path), at(&merged, &path));
        if written == effective {
            return None;
        }
        let others = stack.enabled().filter(|layer| !matches!(layer.source, ConfigLayerSource::User { .. }));
        let layer = others.filter(|layer| at(&layer.table, &path).is_some()).last()?;
        Some(OverriddenMetadata {
            message: message(&layer.source),
            overriding_layer: layer.metadata(),
            effective_value: effective.map_or(JsonValue::Null, json::from_value),
        })
    })
}

fn at<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first)?, |value, name| value.as_table()?.get(name))
}

fn message(source: &ConfigLayerSource) -> String {
    match source {
        ConfigLayerSource::Mdm { domain, key } => format!("Overridden by managed policy (MDM): {domain}:{key}"),
        ConfigLayerSource::System { file } => format!("Overridden by managed config (system): {}", file.display()),
        ConfigLayerSource::Project { dot_codex_folder } => {
            format!("Overridden by project config: {}", dot_codex_folder.display())
        }
        ConfigLayerSource::User { file, .. } => format!("Overridden by user config: {}", file.display()),
        ConfigLayerSource::SessionFlags => "Overridden by session flags".into(),
        ConfigLayerSource::LegacyManagedConfigTomlFromFile { file } => {
            format!("Overridden by legacy managed_config.toml: {}", file.display())
        }
        ConfigLayerSource::LegacyManagedConfigTomlFromMdm => {
            "Overridden by legacy managed configuration from MDM".into()
        }
    }
}

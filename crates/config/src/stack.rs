//! The stack of layers: tables merge, other values are replaced, the higher layer wins.

use std::collections::BTreeMap;

use loomd_protocol::{ConfigLayerMetadata, ConfigLayerSource};
use toml::{Table, Value};

use crate::Layer;

/// All layers, lowest precedence first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerStack {
    layers: Vec<Layer>,
}

impl LayerStack {
    /// Sorts the layers by precedence of their source. Layers of the same kind stay in the given order: of two project
    /// layers the later one wins.
    pub fn new(mut layers: Vec<Layer>) -> Self {
        layers.sort_by_key(|layer| precedence(&layer.source));
        Self { layers }
    }

    /// All layers, lowest precedence first, disabled ones included.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The enabled layers, lowest precedence first.
    pub fn enabled(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.is_enabled())
    }

    /// Merges the enabled layers.
    pub fn merged(&self) -> Table {
        let mut merged = Table::new();
        for layer in self.enabled() {
            merge(&mut merged, &layer.table);
        }
        merged
    }

    /// Returns the layer that each leaf of `merged` comes from, by dotted path. Elements of arrays are leaves, too.
    /// Keys are joined unquoted, so a key with dots makes its path ambiguous.
    pub fn origins(&self, merged: &Table) -> BTreeMap<String, ConfigLayerMetadata> {
        let metadata: Vec<_> = self.enabled().map(Layer::metadata).collect();
        let tables: Vec<_> = self.enabled().zip(&metadata).map(|(layer, origin)| (origin, &layer.table)).collect();
        let mut origins = BTreeMap::new();
        table_origins(merged, &tables, &mut String::new(), &mut origins);
        origins
    }
}

/// From the lowest to the highest.
fn precedence(source: &ConfigLayerSource) -> u8 {
    match source {
        ConfigLayerSource::Mdm { .. } => 0,
        ConfigLayerSource::System { .. } => 1,
        ConfigLayerSource::User { .. } => 2,
        ConfigLayerSource::Project { .. } => 3,
        ConfigLayerSource::SessionFlags => 4,
        ConfigLayerSource::LegacyManagedConfigTomlFromFile { .. } => 5,
        ConfigLayerSource::LegacyManagedConfigTomlFromMdm => 6,
    }
}

/// Merges `over` into `base`; `over` wins.
pub(crate) fn merge(base: &mut Table, over: &Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (Some(base), value) => base.clone_from(value),
            (None, value) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

type Origins = BTreeMap<String, ConfigLayerMetadata>;

/// `tables` are the layers' tables at this path, lowest first.
fn table_origins(merged: &Table, tables: &[(&ConfigLayerMetadata, &Table)], path: &mut String, origins: &mut Origins) {
    for (key, value) in merged {
        let values: Vec<_> =
            tables.iter().filter_map(|(origin, table)| table.get(key).map(|value| (*origin, value))).collect();
        // The highest layer with the key determines its value.
        let Some((winner, _)) = values.last() else { continue };
        with_segment(path, key, |path| match value {
            Value::Table(merged) => {
                let tables: Vec<_> =
                    values.iter().filter_map(|(origin, value)| Some((*origin, value.as_table()?))).collect();
                table_origins(merged, &tables, path, origins);
            }
            other => value_origins(other, winner, path, origins),
        });
    }
}

fn value_origins(value: &Value, origin: &ConfigLayerMetadata, path: &mut String, origins: &mut Origins) {
    match value {
        Value::Table(table) => table_origins(table, &[(origin, table)], path, origins),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                with_segment(path, &index.to_string(), |path| value_origins(item, origin, path, origins));
            }
        }
        _ => {
            origins.insert(path.clone(), origin.clone());
        }
    }
}

fn with_segment(path: &mut String, segment: &str, then: impl FnOnce(&mut String)) {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(segment);
    then(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use loomd_protocol::AbsolutePathBuf;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn path(name: &str) -> AbsolutePathBuf {
        AbsolutePathBuf::new(format!("/{name}")).unwrap()
    }

    /// A system, a user, a project and a flags layer, given in the wrong order.
    fn stack(system: &str, user: &str, project: &str, flags: &str) -> LayerStack {
        LayerStack::new(vec![
            Layer::new(ConfigLayerSource::SessionFlags, flags.parse().unwrap()),
            Layer::new(ConfigLayerSource::Project { dot_codex_folder: path("p") }, project.parse().unwrap()),
            Layer::new(ConfigLayerSource::User { file: path("u"), profile: None }, user.parse().unwrap()),
            Layer::new(ConfigLayerSource::System { file: path("s") }, system.parse().unwrap()),
        ])
    }

    fn check(stack: &LayerStack, merged: &str, origins: &[(&str, &str)]) {
        let table = stack.merged();
        assert_eq!(table, merged.parse().unwrap());
        let found = stack.origins(&table);
        let found: Vec<_> = found
            .iter()
            .map(|(path, origin)| {
                let kind = match &origin.name {
                    ConfigLayerSource::System { .. } => "system",
                    ConfigLayerSource::User { .. } => "user",
                    ConfigLayerSource::Project { .. } => "project",
                    _ => "flags",
                };
                (path.as_str(), kind)
            })
            .collect();
        assert_eq!(found, origins);
    }

    #[test]
    fn tables_merge_and_everything_else_is_replaced() {
        check(
            &stack("a = 1\nl = [1, 2, 3]\nt.x = 1", "a = 2\nl = [4]\nt.y = 2", "t.y = 3\nt.z = 3", "t.z = 4"),
            "a = 2\nl = [4]\nt = { x = 1, y = 3, z = 4 }",
            &[("a", "user"), ("l.0", "user"), ("t.x", "system"), ("t.y", "project"), ("t.z", "flags")],
        );
    }

    #[test]
    fn a_table_and_a_scalar_replace_each_other() {
        check(
            &stack("a.x = 1\nb = 1", "a = 2\nb.x = 2", "a.y = 3", ""),
            "a.y = 3\nb.x = 2",
            &[("a.y", "project"), ("b.x", "user")],
        );
    }

    #[test]
    fn tables_in_arrays_originate_from_the_layer_of_the_array() {
        check(&stack("l = [{ a = 1, b = 1 }, 2]", "", "", "l = [{ a = 2 }]"), "l = [{ a = 2 }]", &[("l.0.a", "flags")]);
    }

    #[test]
    fn disabled_layers_are_not_merged() {
        let mut stack = stack("", "a = 1", "a = 2", "");
        stack.layers[2].disabled_reason = Some("not trusted".into());
        check(&stack, "a = 1", &[("a", "user")]);
        assert_eq!(stack.layers().len(), 4);
    }

    fn tables() -> impl Strategy<Value = Table> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            vec(any::<bool>().prop_map(Value::Boolean), 0..3).prop_map(Value::Array)
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            btree_map("[abc]", inner, 0..3).prop_map(|map| Value::Table(map.into_iter().collect()))
        });
        btree_map("[abc]", value, 0..4).prop_map(|map| map.into_iter().collect())
    }

    /// Whether each leaf of `over` is in `merged`.
    fn contains(merged: &Table, over: &Table) -> bool {
        over.iter().all(|(key, value)| match (merged.get(key), value) {
            (Some(Value::Table(merged)), Value::Table(over)) => contains(merged, over),
            (found, value) => found == Some(value),
        })
    }

    proptest! {
        #[test]
        fn merging_prefers_the_higher_layer_and_keeps_the_rest(low in tables(), high in tables()) {
            let mut merged = low.clone();
            merge(&mut merged, &high);
            prop_assert!(contains(&merged, &high));
            for (key, value) in &low {
                if !high.contains_key(key) {
                    prop_assert_eq!(merged.get(key), Some(value));
                }
            }
            let mut again = merged.clone();
            merge(&mut again, &high);
            prop_assert_eq!(again, merged);
        }

        #[test]
        fn the_origin_of_every_leaf_holds_its_value(low in tables(), high in tables()) {
            let stack = LayerStack::new(vec![
                Layer::new(ConfigLayerSource::SessionFlags, high),
                Layer::new(ConfigLayerSource::User { file: path("u"), profile: None }, low),
            ]);
            let merged = Value::Table(stack.merged());
            for (path, origin) in stack.origins(merged.as_table().unwrap()) {
                let layer = stack.layers().iter().find(|layer| layer.source == origin.name).unwrap();
                let table = Value::Table(layer.table.clone());
                let at = |mut value: Value| {
                    for segment in path.split('.') {
                        value = match segment.parse::<usize>() {
                            Ok(index) => value[index].clone(),
                            Err(_) => value[segment].clone(),
                        };
                    }
                    value
                };
                prop_assert_eq!(at(table), at(merged.clone()));
            }
        }
    }
}

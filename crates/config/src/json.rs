//! Conversion between TOML and JSON. Layers are TOML; versions, views and per-thread overrides are JSON.

use loomd_protocol::{JsonObject, JsonValue};
use toml::{Table, Value};

/// The member that represents a date; versions of layers depend on it.
const DATE: &str = "$__toml_private_datetime";

/// Converts a table, with keys sorted at every level. Dates become objects; numbers that JSON cannot represent become
/// `null`.
pub(crate) fn from_table(table: &Table) -> JsonObject {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter().map(|(key, value)| (key.clone(), from_value(value))).collect()
}

pub(crate) fn from_value(value: &Value) -> JsonValue {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(date) => JsonObject::from_iter([(DATE.to_owned(), date.to_string().into())]).into(),
        Value::Array(items) => items.iter().map(from_value).collect(),
        Value::Table(table) => from_table(table).into(),
    }
}

/// Converts a value; `None` for `null`, which TOML does not have. A nested `null` is dropped. An integer beyond the
/// range of TOML becomes a float.
pub(crate) fn to_value(json: &JsonValue) -> Option<Value> {
    Some(match json {
        JsonValue::Null => return None,
        JsonValue::Bool(flag) => Value::Boolean(*flag),
        JsonValue::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) => Value::Float(number),
            (None, None) => Value::String(number.to_string()),
        },
        JsonValue::String(text) => Value::String(text.clone()),
        JsonValue::Array(items) => Value::Array(items.iter().filter_map(to_value).collect()),
        JsonValue::Object(members) => Value::Table(
            members.iter().filter_map(|(key, value)| to_value(value).map(|value| (key.clone(), value))).collect(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_becomes_json_with_sorted_keys() {
        let table = toml::toml! {
            z = 1
            a = { y = 1.5, b = [true, "x"] }
            d = 2020-01-02T03:04:05Z
            n = nan
        };
        assert_eq!(
            JsonValue::from(from_table(&table)).to_string(),
            r#"{"a":{"b":[true,"x"],"y":1.5},"d":{"$__toml_private_datetime":"2020-01-02T03:04:05Z"},"n":null,"z":1}"#
        );
    }

    #[test]
    fn nulls_are_dropped_in_toml() {
        let table = toml::toml! {
            a = [1, "x"]
            t = { k = true }
            f = 18446744073709551615.0
        };
        assert_eq!(to_value(&json!({"a": [1, null, "x"], "n": null, "t": {"k": true, "n": null}, "f": u64::MAX})), {
            Some(Value::Table(table))
        });
        assert_eq!(to_value(&json!(null)), None);
    }
}

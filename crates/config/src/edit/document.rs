//! Changes one value in the text of a file. Comments, order and formatting of everything else are preserved.

use loomd_protocol::{JsonValue, MergeStrategy};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::WriteError;

/// Sets the value at a path. Missing tables are created.
pub(super) fn set(
    document: &mut DocumentMut,
    path: &[String],
    value: &JsonValue,
    strategy: MergeStrategy,
) -> Result<(), WriteError> {
    refuse_null(value)?;
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, name) in parents.iter().enumerate() {
        let is_direct_parent = depth + 1 == parents.len();
        if table.get(name).is_none_or(Item::is_none) {
            table.insert(name, new_table());
        }
        let item = table.get_mut(name).ok_or(WriteError::NotATable)?;
        if item.as_table_like().is_none() {
            if is_direct_parent {
                return Err(WriteError::NotATable);
            }
            *item = new_table();
        }
        table = item.as_table_like_mut().ok_or(WriteError::NotATable)?;
    }
    put(table, last, value, strategy);
    Ok(())
}

/// Removes the value at a path. A missing value is fine; a missing table is an error.
pub(super) fn remove(document: &mut DocumentMut, path: &[String]) -> Result<(), WriteError> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in parents {
        let inner = table.get_mut(name).and_then(Item::as_table_like_mut);
        table = inner.ok_or(WriteError::PathNotFound)?;
    }
    table.remove(last);
    Ok(())
}

/// TOML has no null.
fn refuse_null(value: &JsonValue) -> Result<(), WriteError> {
    match value {
        JsonValue::Null => {
            Err(WriteError::Validation("invalid value: invalid type: null, expected any valid TOML value".into()))
        }
        JsonValue::Array(items) => items.iter().try_for_each(refuse_null),
        JsonValue::Object(members) => members.values().try_for_each(refuse_null),
        _ => Ok(()),
    }
}

fn put(table: &mut dyn TableLike, name: &str, value: &JsonValue, strategy: MergeStrategy) {
    let is_inline = table.get(name).is_some_and(Item::is_inline_table);
    match (table.get_mut(name).and_then(Item::as_table_like_mut), value) {
        (Some(inner), JsonValue::Object(members)) if strategy == MergeStrategy::Upsert => {
            members.iter().for_each(|(name, value)| put(inner, name, value, strategy));
        }
        // Keeps the position of the header or of the inline table.
        (Some(inner), JsonValue::Object(members)) => {
            let gone: Vec<String> =
                inner.iter().map(|(name, _)| name.to_owned()).filter(|name| !members.contains_key(name)).collect();
            gone.iter().for_each(|name| _ = inner.remove(name));
            members.iter().for_each(|(name, value)| put(inner, name, value, strategy));
        }
        (None, JsonValue::Object(_)) if !is_inline => _ = table.insert(name, item(value)),
        _ => match (table.get_mut(name), inline(value)) {
            // Keeps comments behind the value on its line.
            (Some(Item::Value(old)), mut new) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, new) => _ = table.insert(name, Item::Value(new)),
        },
    }
}

/// A table without a header until it has values.
fn new_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Objects become tables with a header.
fn item(value: &JsonValue) -> Item {
    match value {
        JsonValue::Object(members) => {
            let mut table = Table::new();
            table.set_implicit(!members.is_empty() && members.values().all(JsonValue::is_object));
            members.iter().for_each(|(name, value)| _ = table.insert(name, item(value)));
            Item::Table(table)
        }
        other => Item::Value(inline(other)),
    }
}

/// An inline value. Integers beyond the range of TOML become floats.
fn inline(value: &JsonValue) -> Value {
    match value {
        JsonValue::Null => Value::from(""),
        JsonValue::Bool(flag) => Value::from(*flag),
        JsonValue::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
        JsonValue::String(text) => Value::from(text.as_str()),
        JsonValue::Array(items) => Value::Array(items.iter().map(inline).collect::<Array>()),
        JsonValue::Object(members) => {
            let mut table = InlineTable::new();
            members.iter().for_each(|(name, value)| _ = table.insert(name, inline(value)));
            Value::InlineTable(table)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edit::key_path;

    fn edited(text: &str, path: &str, value: JsonValue, strategy: MergeStrategy) -> Result<String, WriteError> {
        let mut document: DocumentMut = text.parse().unwrap();
        let path = key_path::parse(path);
        match value {
            JsonValue::Null => remove(&mut document, &path)?,
            value => set(&mut document, &path, &value, strategy)?,
        }
        Ok(document.to_string())
    }

    fn check(text: &str, path: &str, value: JsonValue, expected: &str) {
        assert_eq!(edited(text, path, value, MergeStrategy::Replace).unwrap(), expected);
    }

    fn upsert(text: &str, path: &str, value: JsonValue, expected: &str) {
        assert_eq!(edited(text, path, value, MergeStrategy::Upsert).unwrap(), expected);
    }

    #[test]
    fn edits_preserve_comments_order_and_formatting() {
        let text = "# head\nmodel = \"a\"   # which\n\n# about\nreview_model = 'r'\n\n[tui] # look\ntheme = \"x\"\n";
        check(text, "model", json!("b"), &text.replace("\"a\"", "\"b\""));
        check(text, "model", json!(null), "\n# about\nreview_model = 'r'\n\n[tui] # look\ntheme = \"x\"\n");
        check(text, "new", json!(1), &text.replace("'r'\n", "'r'\nnew = 1\n"));
        check(text, "tui.other", json!(true), &format!("{text}other = true\n"));
    }

    #[test]
    fn missing_tables_are_created() {
        check("", "a.b.c", json!(1), "[a.b]\nc = 1\n");
        check("a = 1\n", "t", json!({"x": {"y": 1}}), "a = 1\n\n[t.x]\ny = 1\n");
        check("", "t", json!({}), "[t]\n");
        check("", "p", json!({"/a.b": {"k": [{"x": 1}]}}), "[p.\"/a.b\"]\nk = [{ x = 1 }]\n");
        check("", "p.\"/a.b\".k", json!("v"), "[p.\"/a.b\"]\nk = \"v\"\n");
    }

    #[test]
    fn dotted_keys_and_inline_tables_are_preserved() {
        check("f.a = true\n", "f.b", json!(false), "f.a = true\nf.b = false\n");
        check("t = { a = 1 } # c\n", "t.b", json!(2), "t = { a = 1 , b = 2 } # c\n");
        check("t = { a = 1 }\n", "t.a", json!(2), "t = { a = 2 }\n");
    }

    #[test]
    fn replace_drops_members_that_upsert_keeps() {
        let text = "[s]\ncommand = 'x' # c\n[s.env]\nA = '1'\n";
        upsert(text, "s", json!({"env": {"B": "2"}}), "[s]\ncommand = 'x' # c\n[s.env]\nA = '1'\nB = \"2\"\n");
        check(text, "s", json!({"command": "y"}), "[s]\ncommand = \"y\" # c\n");
        upsert("l = [1, 2]\n", "l", json!([3]), "l = [3]\n");
        check("t = 1\n", "t", json!({"a": 1}), "[t]\na = 1\n");
        upsert("[t]\na = 1\n", "t", json!(5), "t = 5\n");
    }

    #[test]
    fn a_scalar_in_the_path_is_replaced_unless_it_is_the_direct_parent() {
        check("a = 1\n", "a.b.c", json!(1), "[a.b]\nc = 1\n");
        let refused = |path: &str, value| edited("a = 1\nl = []", path, value, MergeStrategy::Replace).unwrap_err();
        assert_eq!(refused("a.b", json!(1)).to_string(), "cannot set value on non-table parent");
        assert_eq!(refused("l.0", json!(1)).to_string(), "cannot set value on non-table parent");
        assert_eq!(refused("l.0", json!(null)).to_string(), "Path not found");
        assert_eq!(refused("x.y", json!(null)).to_string(), "Path not found");
        check("a = 1\n", "b", json!(null), "a = 1\n");
    }

    #[test]
    fn null_values_are_refused() {
        for value in [json!([null]), json!({"a": {"b": null}})] {
            let error = edited("", "a", value, MergeStrategy::Replace).unwrap_err().to_string();
            assert_eq!(error, "invalid value: invalid type: null, expected any valid TOML value");
        }
    }
}

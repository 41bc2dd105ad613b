//! No file, flag or override causes a panic, and what can be loaded can be read.

use loomd_config::Overrides;
use loomd_protocol::JsonValue;
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;

use crate::{Fixture, bare, user};

fn exercise(fixture: &Fixture) {
    if let Ok(loaded) = fixture.load()
        && loaded.profile().is_ok()
    {
        loomd_config::read(&loaded, true).unwrap();
    }
    if let Err(error) = fixture.settings() {
        let shown = error.to_string();
        assert_eq!(error.warning().details, Some(shown));
        error.read_message();
    }
    let _ = fixture.start();
}

/// The names of all keys that the example file sets.
fn keys() -> impl Strategy<Value = String> {
    let example: toml::Table = include_str!("every_key.toml").parse().unwrap();
    let mut paths = Vec::new();
    collect(&example, "", &mut paths);
    prop::sample::select(paths)
}

fn collect(table: &toml::Table, prefix: &str, paths: &mut Vec<String>) {
    for (key, value) in table {
        paths.push(format!("{prefix}{key}"));
        if let toml::Value::Table(table) = value {
            collect(table, &format!("{prefix}{key}."), paths);
        }
    }
}

fn json() -> impl Strategy<Value = JsonValue> {
    let leaf = prop_oneof![
        Just(JsonValue::Null),
        any::<bool>().prop_map(JsonValue::from),
        any::<i64>().prop_map(JsonValue::from),
        any::<u64>().prop_map(JsonValue::from),
        any::<f64>().prop_map(JsonValue::from),
        "\\PC{0,8}".prop_map(JsonValue::from),
        prop::sample::select(vec!["none", "read-only", "low", "v1", "responses", "~", "p"]).prop_map(JsonValue::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(JsonValue::from),
            hash_map(prop_oneof![keys(), "[a-z_.]{0,6}"], inner, 0..3)
                .prop_map(|map| JsonValue::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_in_the_file_do_not_panic(bytes in vec(any::<u8>(), 0..64)) {
        exercise(&user(bytes));
    }

    #[test]
    fn malformed_toml_does_not_panic(text in "([a-z_]{1,5}(\\.[a-z]{1,2})? = (\"é\"|'x'|[0-9]{1,20}|\\[|\\{|\\}|\\]|[0-9-]{10}|nan)\r?\n|\\[{1,2}[a-z.\"]{0,8}\\]{1,2}\n|#☃\n){0,6}") {
        exercise(&user(text));
    }

    #[test]
    fn a_changed_line_of_the_example_does_not_panic(line in 0usize..240, value in "\\PC{0,10}") {
        let mut lines: Vec<_> = include_str!("every_key.toml").lines().collect();
        let changed = lines.get(line).and_then(|line| line.split_once('=')).map(|(key, _)| format!("{key}= {value}"));
        if let Some(changed) = &changed {
            lines[line] = changed;
        }
        exercise(&user(lines.join("\n")));
    }

    #[test]
    fn any_flag_does_not_panic(flags in vec("([a-z_.]{0,10}=)?\\PC{0,12}", 0..4)) {
        if let Ok(overrides) = Overrides::parse(&flags, &[], &[]) {
            let mut fixture = bare();
            fixture.flags = overrides;
            exercise(&fixture);
        }
    }

    #[test]
    fn any_thread_overrides_do_not_panic(config in hash_map(prop_oneof![keys(), "[a-z_.]{0,8}"], json(), 0..4)) {
        exercise(&user(include_str!("every_key.toml")).thread(JsonValue::Object(config.into_iter().collect())));
    }
}

#[test]
fn deep_keys_are_refused() {
    let deep = "a.".repeat(100_000);
    assert!(user(format!("{deep}a = 1")).load().is_err());
    assert!(user(format!("[{deep}a]")).load().is_err());
    assert!(user(format!("a = {}", "[".repeat(100_000))).load().is_err());
    assert!(bare().thread(serde_json::json!({ deep: 1 })).load().is_err());
}

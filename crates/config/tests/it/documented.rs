//! `docs/configuration.md` lists every key, with the text of the schema. `cargo xtask docs` writes the list.

use std::fmt::Write as _;
use std::path::Path;

use loomd_config::{Feature, schema};
use loomd_protocol::{ExperimentalFeatureStage, JsonValue};
use serde_json::Map;

/// The headings of the top level, each with its first key in the order of the schema.
const HEADINGS: &[(&str, &str)] = &[
    ("model", "The model"),
    ("instructions", "Instructions"),
    ("approval_policy", "Approvals and permissions"),
    ("web_search", "Tools and commands"),
    ("mcp_servers", "Extensions"),
    ("cli_auth_credentials_store", "The account"),
    ("loomd", "The server"),
    ("realtime", "Realtime"),
    ("check_for_update_on_startup", "Keys of other programs"),
];

/// What a placeholder in the name of a table stands for.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("agents", "role"),
    ("apps", "app"),
    ("mcp_servers", "server"),
    ("model_providers", "id"),
    ("permissions", "profile"),
    ("plugins", "plugin"),
    ("profiles", "profile"),
    ("projects", "path"),
    ("tools", "tool"),
];

/// Tables of other programs, which are kept as they are.
const OPAQUE: &[&str] = &["audio", "ghost_snapshot", "history", "memories", "notice", "tui", "windows"];

const START: &str = "<!-- keys: written by `cargo xtask docs` -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Writes the list instead when `LOOMD_RECORD_DOCS` is set.
#[test]
fn the_document_lists_every_key_with_its_description() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(START).expect("the start of the list");
    let (listed, after) = rest.split_once(END).expect("the end of the list");
    let mut reference = Reference { root: schema(), text: String::new(), missing: Vec::new() };
    reference.top_level();
    assert_eq!(reference.missing, [""; 0], "keys without a description: write doc comments for them");
    if std::env::var_os("LOOMD_RECORD_DOCS").is_some() {
        std::fs::write(path, format!("{before}{START}{}{END}{after}", reference.text)).unwrap();
        return;
    }
    assert!(listed == reference.text, "the configuration has changed: run `cargo xtask docs`");
}

/// The list of keys, as it is written.
struct Reference {
    root: JsonValue,
    text: String,
    missing: Vec<String>,
}

impl Reference {
    fn top_level(&mut self) {
        let keys = members(&self.root);
        let headings: Vec<_> = keys.keys().filter(|key| HEADINGS.iter().any(|(first, _)| first == key)).collect();
        assert_eq!(headings, HEADINGS.iter().map(|(first, _)| *first).collect::<Vec<_>>());
        let mut tables = Vec::new();
        for (key, schema) in &keys {
            if let Some((_, heading)) = HEADINGS.iter().find(|(first, _)| first == key) {
                self.tables(std::mem::take(&mut tables));
                self.text += &format!("\n## {heading}\n\n| key | value | |\n|---|---|---|\n");
            }
            self.row("", key, schema);
            if !OPAQUE.contains(&key.as_str()) {
                tables.push((key.clone(), schema.clone()));
            }
        }
        self.tables(tables);
    }

    /// A section for each of these that is a table.
    fn tables(&mut self, keys: Vec<(String, JsonValue)>) {
        for (path, schema) in keys {
            if path == "features" {
                self.features(&schema);
            } else {
                self.table(&path, &schema);
            }
        }
    }

    fn table(&mut self, path: &str, schema: &JsonValue) {
        let schema = self.resolved(schema);
        let keys = members(&schema);
        if !keys.is_empty() {
            self.text += &format!("\n### `[{path}]`\n\n| key | value | |\n|---|---|---|\n");
            for (key, schema) in &keys {
                self.row(path, key, schema);
            }
        }
        // A profile has the tables of the top level.
        if path.starts_with("profiles.") {
            return;
        }
        let inner: Vec<_> = keys.iter().map(|(key, schema)| (format!("{path}.{key}"), schema.clone())).collect();
        for (path, schema) in inner {
            self.table(&path, &schema);
        }
        if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
            let last = path.rsplit('.').next().unwrap_or(path);
            let placeholder = PLACEHOLDERS.iter().find(|(table, _)| *table == last).map_or("name", |(_, name)| name);
            self.table(&format!("{path}.<{placeholder}>"), each);
        }
        if schema["type"] == "array" {
            self.table(&format!("[{path}]"), &schema["items"]);
        }
    }

    fn features(&mut self, schema: &JsonValue) {
        self.text += "\n### `[features]`\n\n| key | default | stage | |\n|---|---|---|---|\n";
        let described = members(schema);
        for feature in Feature::ALL {
            let text = described[feature.name()]["description"].as_str().unwrap();
            let stage = match feature.stage() {
                ExperimentalFeatureStage::Stable => "stable",
                ExperimentalFeatureStage::Beta => "beta",
                ExperimentalFeatureStage::UnderDevelopment => "under development",
                ExperimentalFeatureStage::Deprecated => "deprecated",
                ExperimentalFeatureStage::Removed => "removed",
            };
            let (name, default) = (feature.name(), feature.default_enabled());
            writeln!(self.text, "| `{name}` | `{default}` | {stage} | {text} |").unwrap();
        }
    }

    fn row(&mut self, table: &str, key: &str, schema: &JsonValue) {
        let own = schema["description"].as_str().or(schema["allOf"][0]["description"].as_str());
        let resolved = self.resolved(schema);
        let Some(text) = own.or(resolved["description"].as_str()) else {
            self.missing.push(format!("{table}.{key}"));
            return;
        };
        let text = text.replace("\n\n", " ").replace('\n', " ").replace('|', "\\|");
        writeln!(self.text, "| `{key}` | {} | {text} |", self.values(&resolved)).unwrap();
    }

    /// The values that a key takes.
    fn values(&self, schema: &JsonValue) -> String {
        let schema = &self.resolved(schema);
        if let Some(choices) = schema["enum"].as_array() {
            return choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
        }
        if let Some(only) = schema.get("const") {
            return format!("`{only}`");
        }
        if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            let mut values: Vec<_> = choices.iter().map(|choice| self.values(choice)).collect();
            values.dedup();
            return values.join(", ");
        }
        match schema["type"].as_str() {
            Some("array") => match self.resolved(&schema["items"])["type"].as_str() {
                Some("object") => "a list of tables".into(),
                Some("string") => "a list of strings".into(),
                _ => "a list".into(),
            },
            Some("object") => match members(schema).keys().collect::<Vec<_>>().as_slice() {
                // A variant with values of its own.
                [only] if schema["required"].as_array().is_some_and(|all| *all == [only.as_str()]) => {
                    format!("`{{ {only} = {{ … }} }}`")
                }
                _ => "a table".into(),
            },
            Some(plain) => plain.into(),
            None => "any".into(),
        }
    }

    /// The schema itself, or the definition that it refers to.
    fn resolved(&self, schema: &JsonValue) -> JsonValue {
        let single = |list: &str| schema[list].as_array().filter(|all| all.len() == 1).map(|all| all[0].clone());
        if let Some(only) = single("allOf").or_else(|| single("anyOf")) {
            return self.resolved(&only);
        }
        match schema["$ref"].as_str() {
            Some(reference) => self.resolved(&self.root["definitions"][reference.trim_start_matches("#/definitions/")]),
            None => schema.clone(),
        }
    }
}

fn members(schema: &JsonValue) -> Map<String, JsonValue> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

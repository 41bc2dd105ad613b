//! `docs/protocol.md` ends with a list of every method. `cargo xtask docs` writes the list.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use loomd_protocol::{MethodInfo, Stability, UNBUILT, client_requests, server_notifications, server_requests};
use schemars::{Schema, SchemaGenerator};

const START: &str = "<!-- methods: written by `cargo xtask docs` -->\n";
const END: &str = "<!-- end of methods -->\n";

/// Writes the list instead when `LOOMD_RECORD_DOCS` is set.
#[test]
fn the_document_lists_every_method() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(START).expect("the start of the list");
    let (listed, after) = rest.split_once(END).expect("the end of the list");
    let methods = methods();
    if std::env::var_os("LOOMD_RECORD_DOCS").is_some() {
        std::fs::write(path, format!("{before}{START}{methods}{END}{after}")).unwrap();
        return;
    }
    assert!(listed == methods, "the method table has changed: run `cargo xtask docs`");
}

fn methods() -> String {
    let mut text = String::new();
    let mut section = |heading: &str, methods: Vec<MethodInfo>| {
        let results = methods.iter().any(|method| method.result.is_some());
        writeln!(text, "\n### {heading} ({})\n", methods.len()).unwrap();
        text += if results {
            "| method | state | params | result |\n|---|---|---|---|\n"
        } else {
            "| method | state | params |\n|---|---|---|\n"
        };
        for method in methods {
            write!(text, "| `{}` | {} | {} |", method.method, state(&method), type_name(method.params)).unwrap();
            if let Some(result) = method.result {
                write!(text, " {} |", type_name(result)).unwrap();
            }
            text.push('\n');
        }
    };
    section("Client requests", client_requests());
    section("Server requests", server_requests());
    section("Notifications of the server", server_notifications());
    if !UNBUILT.is_empty() {
        writeln!(text, "\n### Known and not built ({})\n", UNBUILT.len()).unwrap();
        text +=
            "These requests of newer releases are answered with the error `-32601`.\n\n| method | state |\n|---|---|\n";
        for (method, stability) in UNBUILT {
            writeln!(text, "| `{method}` | {} |", stability_name(*stability)).unwrap();
        }
    }
    text
}

fn stability_name(stability: Stability) -> &'static str {
    match stability {
        Stability::Stable => "stable",
        Stability::Experimental => "experimental",
        Stability::Unlisted => "in no schema",
    }
}

fn state(method: &MethodInfo) -> String {
    let state = stability_name(method.stability);
    let fields: Vec<_> = method.hidden_fields.iter().map(|field| format!("`{field}`")).collect();
    if fields.is_empty() { state.into() } else { format!("{state}; experimental: {}", fields.join(", ")) }
}

/// The name of a type in the schemas.
fn type_name(schema: fn(&mut SchemaGenerator) -> Schema) -> String {
    let schema = schema(&mut SchemaGenerator::default()).to_value();
    match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => format!("`{name}`"),
        None => "none".into(),
    }
}

//! The JSON Schema files.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::File;
use super::definitions::{Definitions, ref_name};
use super::namespace::{outside_v2, version_one};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
const BUNDLE: &str = "codex_app_server_protocol.schemas.json";
const FLAT_BUNDLE: &str = "codex_app_server_protocol.v2.schemas.json";

/// One file per entry type, and the two bundles. `all` was collected for [`super::Format::JsonSchema`].
pub fn json_schemas(all: &Definitions) -> Vec<File> {
    let mut files: Vec<File> = all.entries.iter().map(|name| single(all, name)).collect();
    files.push(file(BUNDLE, &bundle(all)));
    files.push(file(FLAT_BUNDLE, &flat_bundle(all)));
    files
}

fn file(path: impl Into<String>, schema: &Value) -> File {
    File { path: path.into(), text: format!("{schema:#}") }
}

/// A type with all types that it refers to.
fn single(all: &Definitions, name: &str) -> File {
    let folder = if version_one(name) {
        "v1/"
    } else if outside_v2(name) {
        ""
    } else {
        "v2/"
    };
    let mut schema = Map::from_iter([("$schema".into(), json!(DRAFT)), ("title".into(), json!(name))]);
    schema.extend(all.types[name].as_object().cloned().unwrap_or_default());
    let mut definitions: Map<String, Value> = Map::new();
    for part in all.closure([name]) {
        if part != name {
            definitions.insert(part.to_owned(), all.types[part].clone());
        }
    }
    if !definitions.is_empty() {
        schema.insert("definitions".into(), definitions.into());
    }
    file(format!("{folder}{name}.json"), &schema.into())
}

/// All types, those of v2 one level down.
pub(super) fn bundle(all: &Definitions) -> Value {
    let inside = all.closure(all.types.keys().map(String::as_str).filter(|name| !outside_v2(name)));
    let mut definitions = Map::new();
    for (name, schema) in &all.types {
        if outside_v2(name) {
            definitions.insert(name.clone(), move_refs(schema, &|name| !outside_v2(name) || shared(&inside, name)));
        }
    }
    let v2: Map<String, Value> =
        inside.iter().map(|name| ((*name).to_owned(), move_refs(&all.types[*name], &|_| true))).collect();
    definitions.insert("v2".into(), v2.into());
    json!({ "$schema": DRAFT, "title": "CodexAppServerProtocol", "type": "object", "definitions": definitions })
}

/// The request id is on both levels; unions refer to the inner one.
fn shared(inside: &BTreeSet<&str>, name: &str) -> bool {
    name == "RequestId" && inside.contains(name)
}

/// The types of v2 and of the two big unions, on one level.
fn flat_bundle(all: &Definitions) -> Value {
    let roots = all.types.keys().map(String::as_str).filter(|name| !outside_v2(name));
    let names = all.closure(roots.chain(["ClientRequest", "ServerNotification"]));
    let definitions: Map<String, Value> =
        names.into_iter().map(|name| (name.to_owned(), all.types[name].clone())).collect();
    json!({ "$schema": DRAFT, "title": "CodexAppServerProtocolV2", "type": "object", "definitions": definitions })
}

fn move_refs(schema: &Value, inside: &impl Fn(&str) -> bool) -> Value {
    let mut moved = schema.clone();
    fn walk(schema: &mut Value, inside: &impl Fn(&str) -> bool) {
        if let Some(name) = ref_name(schema).filter(|name| inside(name)) {
            schema["$ref"] = json!(format!("#/definitions/v2/{name}"));
        }
        match schema {
            Value::Object(members) => members.values_mut().for_each(|member| walk(member, inside)),
            Value::Array(elements) => elements.iter_mut().for_each(|element| walk(element, inside)),
            _ => {}
        }
    }
    walk(&mut moved, inside);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::definitions::visit_refs;
    use crate::schema::{Format, Surface};

    fn files(surface: Surface) -> Vec<File> {
        json_schemas(&Definitions::collect(surface, Format::JsonSchema))
    }

    #[test]
    fn every_reference_in_every_file_resolves() {
        for surface in [Surface::Stable, Surface::Experimental] {
            for file in files(surface) {
                let schema: Value = serde_json::from_str(&file.text).unwrap();
                visit_refs(&schema, &mut |name| {
                    let pointer = format!("/definitions/{name}");
                    assert!(schema.pointer(&pointer).is_some(), "{}: {pointer}", file.path);
                });
            }
        }
    }

    /// Params, results and notifications that release 0.118.0 does not have: stable, and all.
    const NEWER: (usize, usize) = (80, 148);

    #[test]
    fn the_files_have_the_known_layout() {
        let count = |surface, folder: &str| {
            files(surface).iter().filter(|file| file.path.rsplit_once('/').map_or("", |(f, _)| f) == folder).count()
        };
        assert_eq!((count(Surface::Stable, ""), count(Surface::Experimental, "")), (35, 41));
        assert_eq!((count(Surface::Stable, "v1"), count(Surface::Experimental, "v1")), (2, 2));
        assert_eq!((count(Surface::Stable, "v2"), count(Surface::Experimental, "v2")), (159 + NEWER.0, 177 + NEWER.1));
    }
}

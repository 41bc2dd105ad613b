//! The tools of a server, and what else its start tells of it.

use std::sync::Arc;

use loomd_protocol::{JsonObject, JsonValue};
use serde_json::json;

use crate::limits::MAX_TOOLS;

/// What is known of a server that has started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// In the server's order, each raw name once.
    pub tools: Vec<Arc<Tool>>,
    /// The capabilities that it announced.
    pub capabilities: JsonObject,
    /// Its name and version.
    pub server_info: Option<JsonValue>,
    pub instructions: Option<String>,
}

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// A JSON Schema; an empty object's when the server sent none.
    pub input_schema: JsonValue,
    pub annotations: Annotations,
    pub meta: Option<JsonObject>,
    /// All of it, as it was sent.
    pub raw: JsonObject,
}

/// What a server says of a tool's effects. Only hints: nothing but the wish for an approval follows from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl Annotations {
    fn decode(value: Option<&JsonValue>) -> Self {
        let hint = |name: &str| value.and_then(|value| value.get(name)).and_then(JsonValue::as_bool);
        Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }

    /// Whether a call should be approved by the user.
    pub fn needs_approval(&self) -> bool {
        if self.destructive == Some(true) {
            return true;
        }
        self.read_only != Some(true) && (self.destructive.unwrap_or(true) || self.open_world.unwrap_or(true))
    }

    /// Whether the tool is said to change nothing, so that calls may run side by side.
    pub fn is_read_only(&self) -> bool {
        self.read_only == Some(true) && self.destructive != Some(true)
    }
}

impl Tool {
    /// Reads what a server sent; `None` for what has no name.
    pub fn decode(value: JsonValue) -> Option<Self> {
        let JsonValue::Object(raw) = value else { return None };
        let text = |name: &str| raw.get(name).and_then(JsonValue::as_str).map(str::to_owned);
        let name = text("name").filter(|name| !name.is_empty())?;
        let title = text("title").or_else(|| raw.get("annotations")?.get("title")?.as_str().map(str::to_owned));
        let input_schema = match raw.get("inputSchema") {
            None | Some(JsonValue::Null) => json!({ "type": "object", "properties": {} }),
            Some(schema) => schema.clone(),
        };
        Some(Self {
            name,
            title,
            description: text("description"),
            input_schema,
            annotations: Annotations::decode(raw.get("annotations")),
            meta: raw.get("_meta").and_then(JsonValue::as_object).cloned(),
            raw,
        })
    }

    /// The input schema as models take it, with an object at its top; the problem with it otherwise.
    pub fn parameters(&self) -> Result<JsonValue, String> {
        let mut schema = self.input_schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            if schema.get("properties").is_some_and(JsonValue::is_null) {
                schema.remove("properties");
            }
            if !schema.contains_key("type") {
                schema.insert("type".into(), "object".into());
            }
        }
        let complete = loomd_model::complete_schema(&schema)?;
        match complete.get("type").and_then(JsonValue::as_str) {
            Some("object") => Ok(complete),
            _ => Err("the schema is not one of an object".into()),
        }
    }
}

/// Collects the tools of a server page by page.
#[derive(Default)]
pub(crate) struct ToolPages {
    tools: Vec<Arc<Tool>>,
    names: std::collections::HashSet<String>,
    skipped: usize,
}

impl ToolPages {
    /// Adds the tools of one page. What is no tool, and what comes again, is skipped.
    pub fn add(&mut self, page: Vec<JsonValue>) {
        for value in page {
            match Tool::decode(value) {
                Some(tool) if self.tools.len() < MAX_TOOLS && self.names.insert(tool.name.clone()) => {
                    self.tools.push(Arc::new(tool));
                }
                _ => self.skipped += 1,
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.tools.len() >= MAX_TOOLS
    }

    pub fn finish(self, server: &str) -> Vec<Arc<Tool>> {
        if self.skipped > 0 {
            let skipped = self.skipped;
            tracing::warn!(server, skipped, "tools without a name, with a name that came before, or beyond the limit");
        }
        self.tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(tools: JsonValue) -> Vec<Arc<Tool>> {
        let mut pages = ToolPages::default();
        let JsonValue::Array(tools) = tools else { panic!("no list") };
        pages.add(tools);
        pages.finish("srv")
    }

    #[test]
    fn what_is_no_tool_does_not_hide_the_others() {
        let tools = decode(json!([1, null, {"name": 3}, {"name": ""}, {"name": "a"}, {"name": "a"}, {"name": "b"}]));
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_listing_is_cut_at_the_limit() {
        let tools = (0..MAX_TOOLS + 10).map(|n| json!({ "name": format!("t{n}") })).collect();
        assert_eq!(decode(JsonValue::Array(tools)).len(), MAX_TOOLS);
    }

    #[test]
    fn a_schema_that_is_no_object_is_refused_and_a_missing_one_completed() {
        let check = |schema: JsonValue, expected: Result<JsonValue, &str>| {
            let tools = decode(json!([{ "name": "t", "inputSchema": schema }]));
            assert_eq!(tools[0].parameters(), expected.map_err(str::to_owned), "{schema}");
        };
        let empty = json!({ "type": "object", "properties": {} });
        check(json!(null), Ok(empty.clone()));
        check(json!({}), Ok(empty.clone()));
        check(json!({ "type": "object", "properties": null }), Ok(empty));
        check(json!({ "type": "string" }), Err("the schema is not one of an object"));
        check(json!("text"), Err("invalid type: string \"text\", expected a schema"));
        check(json!([]), Err("invalid type: sequence, expected a schema"));
        let kept = json!({ "type": "object", "properties": { "e": { "type": "string", "enum": ["a"] } } });
        check(kept.clone(), Ok(kept));
    }

    #[test]
    fn approval_is_needed_unless_a_tool_is_said_to_be_harmless() {
        let needs = |annotations: JsonValue| Annotations::decode(Some(&annotations)).needs_approval();
        assert!(needs(json!({})));
        assert!(needs(json!({ "readOnlyHint": true, "destructiveHint": true })));
        assert!(needs(json!({ "destructiveHint": false })));
        assert!(needs(json!({ "openWorldHint": false })));
        assert!(!needs(json!({ "readOnlyHint": true })));
        assert!(!needs(json!({ "destructiveHint": false, "openWorldHint": false })));
    }
}

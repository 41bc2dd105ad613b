//! Tools under names that other wires accept, and the mapping back from such a name to the tool.
//!
//! Function names are reduced to letters, digits, `_` and `-`; a namespace becomes a prefix. A tool with free text
//! becomes a function with one argument, `input`. Tools that the provider runs are left out: other providers do not
//! have them.

use std::collections::HashMap;

use loomd_protocol::{JsonObject, JsonValue, ResponseItem};
use serde_json::json;

use crate::{ToolSpec, Tools};

/// The longest name that every provider accepts.
const MAX_NAME: usize = 64;

/// A function as it is offered to the model.
#[derive(Debug, PartialEq)]
pub(crate) struct WireTool {
    pub name: String,
    pub description: String,
    pub strict: bool,
    pub parameters: JsonValue,
}

/// The tool behind a wire name.
#[derive(Clone, Debug, PartialEq)]
enum Target {
    Function { name: String, namespace: Option<String> },
    Custom { name: String },
}

/// The tools of a request.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    pub tools: Vec<WireTool>,
    targets: HashMap<String, Target>,
}

impl ToolNames {
    pub fn new(tools: &Tools) -> Self {
        let mut names = Self::default();
        for spec in tools.specs() {
            match spec {
                ToolSpec::Function { name, description, strict, parameters } => {
                    names.function(None, name, description, *strict, parameters);
                }
                ToolSpec::Custom { name, description, format } => names.custom(name, description, format),
                ToolSpec::WebSearch { .. } | ToolSpec::ImageGeneration { .. } => {}
                ToolSpec::Other(value) => names.other(None, value),
            }
        }
        names
    }

    /// Returns the item of a call to this name. An unknown name is passed on unchanged; the tool registry reports it.
    pub fn call(&self, name: &str, arguments: String, call_id: String) -> ResponseItem {
        match self.targets.get(name) {
            Some(Target::Custom { name }) => ResponseItem::CustomToolCall {
                status: None,
                call_id,
                name: name.clone(),
                input: free_text(&arguments),
                id: None,
            },
            Some(Target::Function { name, namespace }) => ResponseItem::FunctionCall {
                name: name.clone(),
                namespace: namespace.clone(),
                arguments,
                call_id,
                id: None,
            },
            None => ResponseItem::FunctionCall { name: name.into(), namespace: None, arguments, call_id, id: None },
        }
    }

    fn function(&mut self, namespace: Option<&str>, name: &str, description: &str, strict: bool, schema: &JsonValue) {
        let target = Target::Function { name: name.into(), namespace: namespace.map(Into::into) };
        // Some providers require an object schema with `properties`.
        let parameters = match schema {
            JsonValue::Object(object) if !object.is_empty() => schema.clone(),
            _ => json!({ "type": "object", "properties": {} }),
        };
        self.push(join(namespace, name), target, description.into(), strict, parameters);
    }

    fn custom(&mut self, name: &str, description: &str, format: &JsonValue) {
        let mut description = description.to_owned();
        if let (Some(syntax), Some(definition)) = (format["syntax"].as_str(), format["definition"].as_str()) {
            description += &format!("\n\nThe input follows this {syntax} grammar:\n{definition}");
        }
        let input = json!({ "type": "string", "description": "The whole input, as free text." });
        let parameters = json!({ "type": "object", "properties": { "input": input }, "required": ["input"], "additionalProperties": false });
        self.push(plain(name), Target::Custom { name: name.into() }, description, false, parameters);
    }

    fn other(&mut self, namespace: Option<&str>, value: &JsonValue) {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        match text("type") {
            "function" => {
                let strict = value["strict"].as_bool().unwrap_or(false);
                self.function(namespace, text("name"), text("description"), strict, &value["parameters"]);
            }
            "custom" => self.custom(text("name"), text("description"), &value["format"]),
            "namespace" if namespace.is_none() => {
                for tool in value["tools"].as_array().into_iter().flatten() {
                    self.other(Some(text("name")), tool);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, name: String, target: Target, description: String, strict: bool, parameters: JsonValue) {
        // Of two tools with the same wire name only the first can be called.
        if name.is_empty() || self.targets.contains_key(&name) {
            return;
        }
        self.targets.insert(name.clone(), target);
        self.tools.push(WireTool { name, description, strict, parameters });
    }
}

/// Extracts the input of a tool that takes free text. Models do not always wrap it as specified.
fn free_text(arguments: &str) -> String {
    let wrapped: Option<JsonObject> = serde_json::from_str(arguments).ok();
    let text = |value: &JsonValue| value.as_str().map(str::to_owned);
    match &wrapped {
        Some(object) => match object.get("input").or_else(|| object.values().next()).and_then(text) {
            Some(text) => text,
            None => arguments.into(),
        },
        None => serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into()),
    }
}

/// Prefixes a name with its namespace.
pub(super) fn join(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => plain(name),
        Some(namespace) if namespace.ends_with("__") => plain(&format!("{namespace}{name}")),
        Some(namespace) => plain(&format!("{namespace}__{name}")),
    }
}

/// Replaces characters that not every provider accepts. A name that is too long is truncated and gets a hash of the
/// whole as suffix.
pub(super) fn plain(name: &str) -> String {
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let plain: String = name.chars().map(|char| if allowed(char) { char } else { '_' }).collect();
    if plain.len() <= MAX_NAME {
        return plain;
    }
    format!("{}_{:08x}", &plain[..MAX_NAME - 9], digest(name) as u32)
}

/// Returns an id of letters, digits, `_` and `-`, of at most `longest` bytes: the id itself if it qualifies, else a
/// hash of it.
pub(crate) fn common_id(id: &str, longest: usize) -> String {
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !id.is_empty() && id.len() <= longest && id.chars().all(allowed) {
        return id.into();
    }
    format!("call_{:016x}", digest(id))
}

/// FNV-1a. Stable across processes, so mapped names and ids are, too.
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ToolNames {
        ToolNames::new(&Tools::new(vec![
            ToolSpec::Function {
                name: "run".into(),
                description: "Runs.".into(),
                strict: true,
                parameters: json!({ "type": "object" }),
            },
            ToolSpec::Custom {
                name: "apply.patch".into(),
                description: "Patches.".into(),
                format: json!({ "type": "grammar", "syntax": "lark", "definition": "start: x" }),
            },
            ToolSpec::ImageGeneration { output_format: "png".into() },
            ToolSpec::Other(json!({ "type": "namespace", "name": "mcp__files", "tools": [
                { "type": "function", "name": "list", "description": "Lists.", "parameters": {} },
            ]})),
            ToolSpec::Other(json!({ "type": "tool_search" })),
        ]))
    }

    #[test]
    fn every_kind_of_tool_becomes_a_function() {
        let names = names();
        let found: Vec<_> = names.tools.iter().map(|tool| (&*tool.name, &*tool.description, tool.strict)).collect();
        let patches = "Patches.\n\nThe input follows this lark grammar:\nstart: x";
        let expected = [("run", "Runs.", true), ("apply_patch", patches, false), ("mcp__files__list", "Lists.", false)];
        assert_eq!(found, expected);
        assert_eq!(names.tools[1].parameters["required"], json!(["input"]));
        assert_eq!(names.tools[2].parameters, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn calls_map_back_to_their_tool() {
        let call = |name: &str, arguments: &str| {
            serde_json::to_value(names().call(name, arguments.into(), "c".into())).unwrap()
        };
        let function = json!({ "type": "function_call", "name": "run", "arguments": "{}", "call_id": "c" });
        assert_eq!(call("run", "{}"), function);
        let listed = json!({ "type": "function_call", "name": "list", "namespace": "mcp__files", "arguments": "{}", "call_id": "c" });
        assert_eq!(call("mcp__files__list", "{}"), listed);
        let unknown = json!({ "type": "function_call", "name": "what.ever", "arguments": "x", "call_id": "c" });
        assert_eq!(call("what.ever", "x"), unknown);
        for (arguments, input) in [
            (r#"{"input":"a\nb"}"#, "a\nb"),
            (r#"{"patch":"a"}"#, "a"),
            (r#""a""#, "a"),
            ("a", "a"),
            ("{}", "{}"),
            (r#"{"input":5}"#, r#"{"input":5}"#),
        ] {
            let custom = json!({ "type": "custom_tool_call", "name": "apply.patch", "input": input, "call_id": "c" });
            assert_eq!(call("apply_patch", arguments), custom, "{arguments}");
        }
    }

    #[test]
    fn long_names_stay_distinct() {
        let long = |end: &str| plain(&format!("{}{end}", "x".repeat(80)));
        assert_eq!((long("a").len(), long("a") == long("a"), long("a") == long("b")), (64, true, false));
        assert_eq!(join(Some("mcp__a__"), "b"), "mcp__a__b");
    }
}

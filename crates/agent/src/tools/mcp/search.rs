//! `tool_search`: finds tools of apps by words, for models that load tools when they need them.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_apps::ToolIndex;
use loomd_model::ToolSpec;
use loomd_protocol::JsonValue;
use serde::Deserialize;
use serde_json::json;

use super::tool::{McpTool, can_search};
use crate::tool_call::{Call, ToolResult};
use crate::tools::cx::ToolCx;
use crate::tools::scope::ToolScope;
use crate::tools::tool::{Tool, ToolFuture, ToolName};

/// The tools of a search that states no limit, and the most of any.
const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 64;

pub(super) struct ToolSearch {
    tools: Vec<Arc<McpTool>>,
    index: ToolIndex,
}

#[derive(Deserialize)]
struct Args {
    query: String,
    limit: Option<f64>,
}

impl ToolSearch {
    pub fn new(tools: Vec<Arc<McpTool>>) -> Self {
        let texts: Vec<String> = tools.iter().map(|tool| text(tool)).collect();
        let index = ToolIndex::new(texts.iter().map(String::as_str));
        Self { tools, index }
    }

    /// The tools that match best, by namespace, as the model gets them.
    fn search(&self, args: &Args) -> Result<Vec<JsonValue>, String> {
        if args.query.trim().is_empty() {
            return Err("query must not be empty".into());
        }
        let limit = match args.limit {
            None => DEFAULT_LIMIT,
            Some(limit) if limit >= 1.0 => (limit as usize).min(MAX_LIMIT),
            Some(_) => return Err("limit must be greater than zero".into()),
        };
        let mut namespaces: Vec<(&str, Option<&str>, Vec<JsonValue>)> = Vec::new();
        for at in self.index.search(&args.query, limit) {
            let tool = &self.tools[at];
            let Some(app) = &tool.app else { continue };
            let function = json!({
                "type": "function",
                "name": app.names.name,
                "description": tool.server.rules.description(&tool.tool),
                "strict": false,
                "defer_loading": true,
                "parameters": tool.parameters,
            });
            match namespaces.iter_mut().find(|(name, ..)| *name == app.names.namespace) {
                Some((_, _, functions)) => functions.push(function),
                None => {
                    let description = app.connector.description.as_deref();
                    namespaces.push((&app.names.namespace, description, vec![function]));
                }
            }
        }
        let namespace = |(name, description, tools): (&str, Option<&str>, Vec<JsonValue>)| {
            let description = description.unwrap_or("Tools of an app.");
            json!({ "type": "namespace", "name": name, "description": description, "tools": tools })
        };
        Ok(namespaces.into_iter().map(namespace).collect())
    }

    fn description(&self) -> String {
        let apps: BTreeMap<&str, Option<&str>> = self
            .tools
            .iter()
            .filter_map(|tool| tool.app.as_ref())
            .map(|app| (app.connector.name.as_str(), app.connector.description.as_deref()))
            .collect();
        let mut text = String::from(
            "Finds tools of apps by words (BM25 over names, descriptions and parameters) and makes the best matches \
             callable from your next step on. Use it instead of listing MCP resources when a task calls for one of \
             these apps:",
        );
        for (name, description) in apps {
            text.push_str("\n- ");
            text.push_str(name);
            if let Some(description) = description {
                text.push_str(": ");
                text.push_str(description);
            }
        }
        text
    }
}

/// What a tool is found by.
fn text(tool: &McpTool) -> String {
    let mut words = vec![tool.name.as_str(), tool.tool.name.as_str(), tool.server.name.as_str()];
    words.extend(tool.tool.title.as_deref());
    words.extend(tool.tool.description.as_deref());
    if let Some(app) = &tool.app {
        words.push(&app.connector.name);
        words.extend(app.connector.description.as_deref());
    }
    let properties = tool.parameters.get("properties").and_then(JsonValue::as_object);
    words.extend(properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)));
    words.join(" ")
}

impl Tool for ToolSearch {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("tool_search")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        can_search(scope).then(|| {
            ToolSpec::Other(json!({
                "type": "tool_search",
                "execution": "client",
                "description": self.description(),
                "parameters": {
                    "type": "object",
                    "properties": {
                        "query": { "type": "string", "description": "Words that describe the tool." },
                        "limit": { "type": "number", "description": "The most tools to return; 8 if left out." },
                    },
                    "required": ["query"],
                    "additionalProperties": false,
                },
            }))
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        can_search(scope)
    }

    fn parallel(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, _: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        let found = || -> ToolResult {
            let args: Args = call.arguments()?;
            let tools = self.search(&args)?;
            Ok(JsonValue::from(tools).to_string().into())
        };
        Box::pin(std::future::ready(found()))
    }
}

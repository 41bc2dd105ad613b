//! The tools of a request. Their JSON is built once and shared by all requests that offer them.

use std::fmt;
use std::sync::OnceLock;

use loomd_protocol::JsonValue;
use serde::Serialize;

/// One tool, in the form of the Responses API.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolSpec {
    Function {
        name: String,
        description: String,
        strict: bool,
        /// A JSON Schema.
        parameters: JsonValue,
    },
    /// A tool whose input is free text.
    Custom { name: String, description: String, format: JsonValue },
    /// A tool that the provider runs.
    WebSearch {
        external_web_access: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        filters: Option<JsonValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<JsonValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        search_context_size: Option<JsonValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        search_content_types: Option<JsonValue>,
    },
    /// A tool that the provider runs.
    ImageGeneration { output_format: String },
    /// Any other tool, sent unchanged.
    #[serde(untagged)]
    Other(JsonValue),
}

impl ToolSpec {
    /// The name by which the model calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Function { name, .. } | Self::Custom { name, .. } => name,
            Self::WebSearch { .. } => "web_search",
            Self::ImageGeneration { .. } => "image_generation",
            Self::Other(value) => value["name"].as_str().or(value["type"].as_str()).unwrap_or_default(),
        }
    }
}

/// A list of tools. Equal lists are sent as the same JSON.
#[derive(Default)]
pub struct Tools {
    specs: Vec<ToolSpec>,
    json: OnceLock<String>,
}

impl Tools {
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        Self { specs, json: OnceLock::new() }
    }

    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The JSON array of all tools.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| serde_json::to_string(&self.specs).unwrap_or_else(|_| "[]".into()))
    }
}

impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs.iter().map(ToolSpec::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_tool_is_serialised_as_the_api_expects() {
        let tools = Tools::new(vec![
            ToolSpec::Function {
                name: "f".into(),
                description: "d".into(),
                strict: false,
                parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            },
            ToolSpec::Custom { name: "c".into(), description: "d".into(), format: json!({ "type": "grammar" }) },
            ToolSpec::WebSearch {
                external_web_access: true,
                filters: None,
                user_location: None,
                search_context_size: Some(json!("low")),
                search_content_types: None,
            },
            ToolSpec::ImageGeneration { output_format: "png".into() },
            ToolSpec::Other(json!({ "type": "tool_search", "x": 1 })),
        ]);
        let expected = [
            r#"{"type":"function","name":"f","description":"d","strict":false,"parameters":{"type":"object","properties":{},"additionalProperties":false}}"#,
            r#"{"type":"custom","name":"c","description":"d","format":{"type":"grammar"}}"#,
            r#"{"type":"web_search","external_web_access":true,"search_context_size":"low"}"#,
            r#"{"type":"image_generation","output_format":"png"}"#,
            r#"{"type":"tool_search","x":1}"#,
        ];
        assert_eq!(tools.json(), format!("[{}]", expected.join(",")));
        let names: Vec<_> = tools.specs().iter().map(ToolSpec::name).collect();
        assert_eq!(names, ["f", "c", "web_search", "image_generation", "tool_search"]);
    }
}

//! The tools that a model is offered. Their JSON is made once and shared by all requests that offer them.

use std::fmt;
use std::sync::OnceLock;

use loomd_protocol::JsonValue;
use serde::Serialize;

/// One tool, as the Responses API spells it.
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
    /// The provider's own.
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
    /// The provider's own.
    ImageGeneration { output_format: String },
    /// Anything else, as it is.
    #[serde(untagged)]
    Other(JsonValue),
}

impl ToolSpec {
    /// What the model calls it by.
    pub fn name(&self) -> &str {
        match self {
            Self::Function { name, .. } | Self::Custom { name, .. } => name,
            Self::WebSearch { .. } => "web_search",
            Self::ImageGeneration { .. } => "image_generation",
            Self::Other(value) => value["name"].as_str().or(value["type"].as_str()).unwrap_or_default(),
        }
    }
}

/// A list of tools. Two are equal when they are sent as the same text.
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

    /// The JSON array.
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

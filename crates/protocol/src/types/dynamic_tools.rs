//! Tools that the client defines: their declaration and `item/tool/call`.

use std::borrow::Cow;

use schemars::JsonSchema;
use schemars::{Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde::{Deserializer, Serializer};

use crate::{DynamicToolCallOutputContentItem, JsonObject, JsonValue};

/// Params of `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallParams {
    pub thread_id: String,
    pub turn_id: String,
    pub call_id: String,
    /// The name of the group that the tool is in.
    #[serde(default)]
    pub namespace: Option<String>,
    pub tool: String,
    pub arguments: JsonValue,
}

/// Result of `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallResponse {
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    pub success: bool,
}

/// A tool, or a group of tools, that the client offers to the model.
///
/// The original form is flat (`{name, description, inputSchema}`); newer clients tag each entry with `type: "function"`
/// or `type: "namespace"`. Both are accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum DynamicToolSpec {
    Function(DynamicTool),
    Namespace(DynamicToolNamespace),
}

/// One tool of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicTool {
    pub name: String,
    pub description: String,
    pub input_schema: JsonValue,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub defer_loading: bool,
}

/// A named group of tools of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DynamicToolNamespace {
    pub name: String,
    pub description: String,
    pub tools: Vec<DynamicTool>,
}

impl<'de> Deserialize<'de> for DynamicToolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = JsonObject::deserialize(deserializer)?;
        let namespace = entry.get("type").and_then(JsonValue::as_str) == Some("namespace");
        let entry = JsonValue::Object(entry);
        if namespace {
            DynamicToolNamespace::deserialize(entry).map(Self::Namespace)
        } else {
            DynamicTool::deserialize(entry).map(Self::Function)
        }
        .map_err(D::Error::custom)
    }
}

impl Serialize for DynamicToolSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<'a> {
            r#type: &'static str,
            #[serde(flatten)]
            namespace: &'a DynamicToolNamespace,
        }
        match self {
            Self::Function(tool) => tool.serialize(serializer),
            Self::Namespace(namespace) => Tagged { r#type: "namespace", namespace }.serialize(serializer),
        }
    }
}

/// The schema describes the flat form, which every release accepts.
impl JsonSchema for DynamicToolSpec {
    fn schema_name() -> Cow<'static, str> {
        "DynamicToolSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DynamicTool::json_schema(generator)
    }
}

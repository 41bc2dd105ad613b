//! The conversation as the model is told it. An item is turned into JSON once, when it enters the history,
//! and that text is shared by every later request.

use std::fmt;
use std::sync::Arc;

use loomd_protocol::{
    ContentItem, FunctionCallOutputBody, JsonValue, LocalShellAction, LocalShellStatus, MessagePhase,
    ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem, ResponsesApiWebSearchAction,
};
use serde::Serialize;

/// An item of the conversation: Responses JSON without the item's id.
#[derive(Clone, PartialEq, Eq)]
pub struct InputItem {
    json: Arc<str>,
    id: Option<Arc<str>>,
}

impl InputItem {
    /// `None` for items that are never sent.
    pub fn new(item: &ResponseItem) -> Option<Self> {
        Self::with_id(item, None)
    }

    /// An item that has this id where the provider stores items. The protocol's own types do not keep the
    /// ids of all items.
    pub fn with_id(item: &ResponseItem, id: Option<&str>) -> Option<Self> {
        let json = serde_json::to_string(&Sent::from(item)?).ok()?;
        // The id of a picture is always sent, so it stands in the JSON already.
        let id = id.or(own_id(item)).filter(|_| !matches!(item, ResponseItem::ImageGenerationCall { .. }));
        Some(Self { json: json.into(), id: id.map(Into::into) })
    }

    pub fn json(&self) -> &str {
        &self.json
    }

    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The item again, without its id.
    pub fn decode(&self) -> Option<ResponseItem> {
        serde_json::from_str(&self.json).ok()
    }

    /// Bytes of JSON.
    #[allow(clippy::len_without_is_empty, reason = "an item is never empty")]
    pub fn len(&self) -> usize {
        self.json.len()
    }
}

impl fmt::Debug for InputItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

fn own_id(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::Message { id, .. }
        | ResponseItem::LocalShellCall { id, .. }
        | ResponseItem::FunctionCall { id, .. }
        | ResponseItem::ToolSearchCall { id, .. }
        | ResponseItem::CustomToolCall { id, .. }
        | ResponseItem::WebSearchCall { id, .. } => id.as_deref(),
        _ => None,
    }
}

/// Exactly the fields that a model is sent.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Sent<'a> {
    Message {
        role: &'a str,
        content: &'a [ContentItem],
        #[serde(skip_serializing_if = "Option::is_none")]
        end_turn: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<MessagePhase>,
    },
    Reasoning {
        summary: &'a [ReasoningItemReasoningSummary],
        content: Option<&'a [ReasoningItemContent]>,
        encrypted_content: Option<&'a str>,
    },
    LocalShellCall {
        call_id: Option<&'a str>,
        status: LocalShellStatus,
        action: &'a LocalShellAction,
    },
    FunctionCall {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        arguments: &'a str,
        call_id: &'a str,
    },
    ToolSearchCall {
        call_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        execution: &'a str,
        arguments: &'a JsonValue,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a FunctionCallOutputBody,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        output: &'a FunctionCallOutputBody,
    },
    ToolSearchOutput {
        call_id: Option<&'a str>,
        status: &'a str,
        execution: &'a str,
        tools: &'a [JsonValue],
    },
    WebSearchCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<SentAction<'a>>,
    },
    ImageGenerationCall {
        id: &'a str,
        status: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        revised_prompt: Option<&'a str>,
        result: &'a str,
    },
    Compaction {
        encrypted_content: &'a str,
    },
}

impl<'a> Sent<'a> {
    fn from(item: &'a ResponseItem) -> Option<Self> {
        Some(match item {
            ResponseItem::Message { role, content, phase, end_turn, id: _ } => {
                Self::Message { role, content, end_turn: *end_turn, phase: *phase }
            }
            ResponseItem::Reasoning { summary, content, encrypted_content } => Self::Reasoning {
                summary,
                content: content.as_deref(),
                encrypted_content: encrypted_content.as_deref(),
            },
            ResponseItem::LocalShellCall { call_id, status, action, id: _ } => {
                Self::LocalShellCall { call_id: call_id.as_deref(), status: *status, action }
            }
            ResponseItem::FunctionCall { name, namespace, arguments, call_id, id: _ } => {
                Self::FunctionCall { name, namespace: namespace.as_deref(), arguments, call_id }
            }
            ResponseItem::ToolSearchCall { call_id, status, execution, arguments, id: _ } => {
                Self::ToolSearchCall { call_id: call_id.as_deref(), status: status.as_deref(), execution, arguments }
            }
            ResponseItem::FunctionCallOutput { call_id, output } => Self::FunctionCallOutput { call_id, output },
            ResponseItem::CustomToolCall { status, call_id, name, input, id: _ } => {
                Self::CustomToolCall { status: status.as_deref(), call_id, name, input }
            }
            ResponseItem::CustomToolCallOutput { call_id, name, output } => {
                Self::CustomToolCallOutput { call_id, name: name.as_deref(), output }
            }
            ResponseItem::ToolSearchOutput { call_id, status, execution, tools } => {
                Self::ToolSearchOutput { call_id: call_id.as_deref(), status, execution, tools }
            }
            ResponseItem::WebSearchCall { status, action, id: _ } => {
                Self::WebSearchCall { status: status.as_deref(), action: action.as_ref().map(SentAction::from) }
            }
            ResponseItem::ImageGenerationCall { id, status, revised_prompt, result } => {
                Self::ImageGenerationCall { id, status, revised_prompt: revised_prompt.as_deref(), result }
            }
            ResponseItem::Compaction { encrypted_content } => Self::Compaction { encrypted_content },
            ResponseItem::GhostSnapshot { .. } | ResponseItem::Other => return None,
        })
    }
}

/// What a search did, without what is not known.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentAction<'a> {
    Search {
        #[serde(skip_serializing_if = "Option::is_none")]
        query: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        queries: Option<&'a [String]>,
    },
    OpenPage {
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'a str>,
    },
    FindInPage {
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<&'a str>,
    },
    Other,
}

impl<'a> SentAction<'a> {
    fn from(action: &'a ResponsesApiWebSearchAction) -> Self {
        match action {
            ResponsesApiWebSearchAction::Search { queries, query } => {
                Self::Search { query: query.as_deref(), queries: queries.as_deref() }
            }
            ResponsesApiWebSearchAction::OpenPage { url } => Self::OpenPage { url: url.as_deref() },
            ResponsesApiWebSearchAction::FindInPage { pattern, url } => {
                Self::FindInPage { url: url.as_deref(), pattern: pattern.as_deref() }
            }
            ResponsesApiWebSearchAction::Other => Self::Other,
        }
    }
}

//! The items of a conversation as they are sent. Each is serialised once, when it enters the history, and the JSON is
//! shared by all later requests.

use std::fmt;
use std::sync::Arc;

use loomd_protocol::{
    ContentItem, FunctionCallOutputBody, JsonValue, LocalShellAction, LocalShellStatus, MessagePhase,
    ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem, ResponsesApiWebSearchAction,
};
use serde::Serialize;

use crate::transcript::ReasoningOrigin;

/// Prefixes of user messages that carry context, and are not input of the user.
pub const CONTEXT_PREFIXES: &[&str] = &[
    "# AGENTS.md instructions for ",
    "<environment_context>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_instructions>",
    "<user_action>",
    "<subagent_notification>",
    "<skill>",
    "<hook_prompt",
    "<codex_internal_context",
    "Warning: a request for the model ",
    "Warning: apply_patch was requested via ",
];

/// An item of a conversation: its Responses JSON without the id.
#[derive(Clone, PartialEq, Eq)]
pub struct InputItem {
    json: Arc<str>,
    id: Option<Arc<str>>,
    /// Reasoning that another wire produced, which the Responses API cannot take back.
    foreign: bool,
}

impl InputItem {
    /// Returns `None` for items that are never sent.
    pub fn new(item: &ResponseItem) -> Option<Self> {
        Self::with_id(item, None)
    }

    /// As [`InputItem::new`], with the id to send where the provider stores items. The protocol's item types do not
    /// carry all ids.
    pub fn with_id(item: &ResponseItem, id: Option<&str>) -> Option<Self> {
        let json = serde_json::to_string(&Sent::from(item)?).ok()?;
        // The id of an image generation is always sent, so it is part of the JSON.
        let id = id.or(own_id(item)).filter(|_| !matches!(item, ResponseItem::ImageGenerationCall { .. }));
        Some(Self { json: json.into(), id: id.map(Into::into), foreign: is_foreign(item) })
    }

    pub fn json(&self) -> &str {
        &self.json
    }

    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Decodes the item, without its id.
    pub fn decode(&self) -> Option<ResponseItem> {
        serde_json::from_str(&self.json).ok()
    }

    /// The length of the JSON in bytes.
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

fn is_foreign(item: &ResponseItem) -> bool {
    matches!(item, ResponseItem::Reasoning { encrypted_content: Some(origin), .. } if ReasoningOrigin::is_foreign(origin))
}

/// The fields of an item that are sent.
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
    AgentMessage {
        author: &'a str,
        recipient: &'a str,
        content: &'a [ContentItem],
    },
    FunctionCallOutput {
        #[serde(skip_serializing_if = "str::is_empty")]
        call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
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
            ResponseItem::AgentMessage { author, recipient, content } => {
                Self::AgentMessage { author, recipient, content }
            }
            ResponseItem::FunctionCallOutput { call_id, name, namespace, output } => {
                Self::FunctionCallOutput { call_id, name: name.as_deref(), namespace: namespace.as_deref(), output }
            }
            ResponseItem::CustomToolCall { status, call_id, name, input, id: _ } => {
                Self::CustomToolCall { status: status.as_deref(), call_id, name, input }
            }
            ResponseItem::CustomToolCallOutput { call_id, output, name: _ } => {
                Self::CustomToolCallOutput { call_id, output }
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

/// The action of a web search, without absent fields.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks what is sent for an item; null for nothing.
    fn check(item: JsonValue, sent: JsonValue) {
        let decoded: ResponseItem = serde_json::from_value(item.clone()).unwrap();
        let input = InputItem::new(&decoded);
        let found = input.as_ref().map_or(JsonValue::Null, |input| serde_json::from_str(input.json()).unwrap());
        assert_eq!(found, sent, "{item}");
        if let Some(input) = input {
            let again = InputItem::new(&input.decode().unwrap()).unwrap();
            assert_eq!(again.json(), input.json(), "encoding and decoding round-trips");
        }
    }

    #[test]
    fn messages_keep_their_phase_but_neither_id_nor_status() {
        let text = json!([{ "type": "output_text", "text": "a" }]);
        check(
            json!({ "type": "message", "id": "m", "status": "completed", "role": "assistant", "content": text }),
            json!({ "type": "message", "role": "assistant", "content": text }),
        );
        check(
            json!({ "type": "message", "role": "assistant", "phase": "commentary", "end_turn": true, "content": [] }),
            json!({ "type": "message", "role": "assistant", "content": [], "end_turn": true, "phase": "commentary" }),
        );
    }

    #[test]
    fn reasoning_sends_absent_parts_as_null() {
        check(
            json!({ "type": "reasoning", "id": "r", "summary": [] }),
            json!({ "type": "reasoning", "summary": [], "content": null, "encrypted_content": null }),
        );
        let summary = json!([{ "type": "summary_text", "text": "s" }]);
        let content = json!([{ "type": "reasoning_text", "text": "raw" }]);
        let full = json!({ "type": "reasoning", "summary": summary, "content": content, "encrypted_content": "E" });
        check(full.clone(), full);
    }

    #[test]
    fn calls_and_outputs_keep_their_call_ids() {
        for item in [
            json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "c" }),
            json!({ "type": "function_call", "name": "f", "namespace": "n", "arguments": "{}", "call_id": "c" }),
            json!({ "type": "function_call_output", "call_id": "c", "output": "text" }),
            json!({ "type": "function_call_output", "call_id": "c", "output": [{ "type": "input_text", "text": "t" }] }),
            json!({ "type": "custom_tool_call", "status": "completed", "call_id": "c", "name": "t", "input": "x" }),
            json!({ "type": "custom_tool_call", "call_id": "c", "name": "t", "input": "x" }),
            json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "text" }),
            json!({ "type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": { "q": 1 } }),
            json!({ "type": "tool_search_output", "call_id": "c", "status": "completed", "execution": "client", "tools": [] }),
            json!({ "type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk=" }),
            json!({ "type": "compaction", "encrypted_content": "E" }),
        ] {
            check(item.clone(), item.clone());
        }
        let action = json!({ "type": "exec", "command": ["true"], "env": null, "timeout_ms": null, "user": null, "working_directory": null });
        check(
            json!({ "type": "local_shell_call", "id": "l", "call_id": "c", "status": "completed", "action": action }),
            json!({ "type": "local_shell_call", "call_id": "c", "status": "completed", "action": action }),
        );
    }

    #[test]
    fn a_web_search_omits_absent_fields() {
        for (action, sent) in [
            (json!({ "type": "search", "query": "q", "sources": [] }), json!({ "type": "search", "query": "q" })),
            (json!({ "type": "open_page", "url": "u" }), json!({ "type": "open_page", "url": "u" })),
            (json!({ "type": "new" }), json!({ "type": "other" })),
        ] {
            check(
                json!({ "type": "web_search_call", "id": "w", "status": "completed", "action": action }),
                json!({ "type": "web_search_call", "status": "completed", "action": sent }),
            );
        }
        let bare = json!({ "type": "web_search_call", "status": "completed" });
        check(bare.clone(), bare);
    }

    #[test]
    fn unknown_items_and_ghost_snapshots_are_not_sent() {
        check(json!({ "type": "hologram" }), JsonValue::Null);
        let commit = json!({ "id": "c", "preexisting_untracked_files": [], "preexisting_untracked_dirs": [] });
        check(json!({ "type": "ghost_snapshot", "ghost_commit": commit }), JsonValue::Null);
    }

    #[test]
    fn ids_are_not_part_of_the_json() {
        let item = |item: JsonValue| serde_json::from_value::<ResponseItem>(item).unwrap();
        let message = item(json!({ "type": "message", "id": "m", "role": "user", "content": [] }));
        let reasoning = item(json!({ "type": "reasoning", "id": "r", "summary": [] }));
        let picture = item(json!({ "type": "image_generation_call", "id": "i", "status": "x", "result": "" }));
        for (item, given, expected) in [
            (&message, None, Some("m")),
            (&message, Some("given"), Some("given")),
            (&reasoning, None, None),
            (&reasoning, Some("r"), Some("r")),
            (&picture, Some("i"), None),
        ] {
            assert_eq!(InputItem::with_id(item, given).unwrap().id(), expected, "{item:?}");
        }
    }
}

//! Items of the conversation with the model, in the spelling of the Responses API (snake_case). They occur in
//! `thread/resume` history, in raw events and in rollouts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonValue;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentItem {
    InputText { text: String },
    InputImage { image_url: String },
    OutputText { text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FunctionCallOutputBody {
    Text(String),
    Items(Vec<FunctionCallOutputContentItem>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FunctionCallOutputContentItem {
    InputText {
        text: String,
    },
    InputImage {
        image_url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<ImageDetail>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GhostCommit {
    pub id: String,
    pub parent: Option<String>,
    pub preexisting_untracked_files: Vec<String>,
    pub preexisting_untracked_dirs: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ImageDetail {
    Auto,
    Low,
    High,
    Original,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum LocalShellAction {
    Exec {
        command: Vec<String>,
        env: Option<BTreeMap<String, String>>,
        timeout_ms: Option<u64>,
        user: Option<String>,
        working_directory: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LocalShellStatus {
    Completed,
    InProgress,
    Incomplete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessagePhase {
    Commentary,
    FinalAnswer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReasoningItemContent {
    ReasoningText { text: String },
    Text { text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReasoningItemReasoningSummary {
    SummaryText { text: String },
}

/// One item of the conversation with the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseItem {
    Message {
        role: String,
        content: Vec<ContentItem>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_turn: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<MessagePhase>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    Reasoning {
        summary: Vec<ReasoningItemReasoningSummary>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Vec<ReasoningItemContent>>,
        encrypted_content: Option<String>,
    },
    LocalShellCall {
        call_id: Option<String>,
        status: LocalShellStatus,
        action: LocalShellAction,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    FunctionCall {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        arguments: String,
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    ToolSearchCall {
        call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        execution: String,
        arguments: JsonValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A message of one agent to another, both named by their paths.
    AgentMessage {
        author: String,
        recipient: String,
        content: Vec<ContentItem>,
    },
    FunctionCallOutput {
        /// Empty for an output without a call: one that the client sends by itself, with the tool's name.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        output: FunctionCallOutputBody,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        call_id: String,
        name: String,
        input: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    CustomToolCallOutput {
        call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        output: FunctionCallOutputBody,
    },
    ToolSearchOutput {
        call_id: Option<String>,
        status: String,
        execution: String,
        tools: Vec<JsonValue>,
    },
    WebSearchCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<ResponsesApiWebSearchAction>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    ImageGenerationCall {
        id: String,
        status: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        revised_prompt: Option<String>,
        result: String,
    },
    GhostSnapshot {
        ghost_commit: GhostCommit,
    },
    #[serde(alias = "compaction_summary")]
    Compaction {
        encrypted_content: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponsesApiWebSearchAction {
    Search {
        queries: Option<Vec<String>>,
        query: Option<String>,
    },
    OpenPage {
        url: Option<String>,
    },
    FindInPage {
        pattern: Option<String>,
        url: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// Params of the `rawResponseItem/completed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RawResponseItemCompletedNotification {
    pub thread_id: String,
    pub turn_id: String,
    pub item: ResponseItem,
}

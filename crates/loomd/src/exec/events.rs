//! The events of `exec --experimental-json`, one per line, in the format of the TypeScript SDK.

use loomd_protocol::{JsonValue, WebSearchAction};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ThreadEvent {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Usage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: Message },
    #[serde(rename = "item.started")]
    ItemStarted { item: Item },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: Item },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: Item },
    #[serde(rename = "error")]
    Error { message: String },
}

/// Token usage of the whole thread so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    /// Always 0: providers do not report it.
    pub cache_write_input_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_output_tokens: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// `item_N`, counted from 0 in each run.
    pub id: String,
    #[serde(flatten)]
    pub details: Details,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Details {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    CommandExecution {
        command: String,
        aggregated_output: String,
        exit_code: Option<i32>,
        status: Status,
    },
    FileChange {
        changes: Vec<Change>,
        status: Status,
    },
    McpToolCall {
        server: String,
        tool: String,
        arguments: JsonValue,
        result: Option<McpResult>,
        error: Option<Message>,
        status: Status,
    },
    WebSearch {
        query: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<WebSearchAction>,
    },
    TodoList {
        items: Vec<Todo>,
    },
    Error {
        message: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InProgress,
    Completed,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Add,
    Delete,
    Update,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct McpResult {
    pub content: Vec<JsonValue>,
    pub structured_content: Option<JsonValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Todo {
    pub text: String,
    pub completed: bool,
}

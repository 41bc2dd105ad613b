//! The events of evaluations.

use std::time::{Duration, SystemTime};

use loomd_client::protocol::TurnStatus;
use serde_json::Value;

use crate::limits::TokenUsage;

/// Something that happened in an evaluation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    PromptRendered(PromptRendered),
    ToolInvoked(ToolInvoked),
    PromptExecuted(PromptExecuted),
}

impl Event {
    pub fn tool_invoked(&self) -> Option<&ToolInvoked> {
        match self {
            Self::ToolInvoked(invoked) => Some(invoked),
            _ => None,
        }
    }
}

/// A prompt was rendered; its turn is not started yet.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRendered {
    /// `namespace/key` of the prompt.
    pub prompt: String,
    pub text: String,
    pub tools: Vec<String>,
    pub at: SystemTime,
}

/// A tool ended: of this program, or one of the server's.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInvoked {
    pub prompt: String,
    pub thread_id: String,
    pub turn_id: String,
    /// The call's id, or the item's.
    pub call_id: String,
    pub source: ToolSource,
    /// The name of the tool, or its kind for those of the server: `command`, `file_change`, `web_search`.
    pub name: String,
    pub arguments: Value,
    pub success: bool,
    /// What the tool returned, up to 64 KiB.
    pub output: String,
    pub duration: Option<Duration>,
    pub at: SystemTime,
}

/// Whose tool it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSource {
    /// A [`Tool`](crate::Tool) of this program.
    Prompt,
    Command,
    FileChange,
    /// A tool of an MCP server.
    Mcp {
        server: String,
    },
    WebSearch,
}

/// A turn of a prompt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptExecuted {
    pub prompt: String,
    pub thread_id: String,
    pub turn_id: String,
    pub status: TurnStatus,
    /// What the turn used, in all of its model calls.
    pub usage: Option<TokenUsage>,
    pub duration: Duration,
    pub at: SystemTime,
}

//! The `Thread` object: its source, working directory and status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ReasoningEffort, ThreadSection, Turn};

/// The position of a sub-agent in the tree of agents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AgentPath(pub String);

/// The git state that was recorded when a thread was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitInfo {
    pub sha: Option<String>,
    pub branch: Option<String>,
    pub origin_url: Option<String>,
}

/// What kind of client started a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionSource {
    Cli,
    Vscode,
    Exec,
    AppServer,
    Custom(String),
    SubAgent(SubAgentSource),
    Unknown,
}

/// Why a sub-agent thread exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubAgentSource {
    Review,
    Compact,
    ThreadSpawn {
        agent_nickname: Option<String>,
        agent_path: Option<AgentPath>,
        #[serde(alias = "agent_type")]
        agent_role: Option<String>,
        depth: i32,
        parent_thread_id: ThreadId,
    },
    MemoryConsolidation,
    Other(String),
}

/// A conversation with an agent, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    pub id: String,
    pub preview: String,
    pub ephemeral: bool,
    pub model_provider: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub status: ThreadStatus,
    pub path: Option<String>,
    pub cwd: String,
    pub cli_version: String,
    pub source: SessionSource,
    pub agent_nickname: Option<String>,
    pub agent_role: Option<String>,
    pub git_info: Option<GitInfo>,
    pub name: Option<String>,
    pub turns: Vec<Turn>,
    /// The thread at the root of its tree of agents: its own id unless another agent started it.
    #[serde(default)]
    pub session_id: String,
    #[serde(default)]
    pub project_id: Option<String>,
    #[serde(default)]
    pub section: Option<ThreadSection>,
    #[serde(default)]
    pub section_entered_at: Option<i64>,
    #[serde(default)]
    pub forked_from_id: Option<String>,
    /// The thread whose agent started it.
    #[serde(default)]
    pub parent_thread_id: Option<String>,
    #[serde(default)]
    pub history_mode: ThreadHistoryMode,
    /// What the next turn will use; null when that is not known.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    #[serde(default)]
    pub recency_at: Option<i64>,
    /// The name of the client that created it.
    #[serde(default)]
    pub originator: Option<String>,
    /// A label that its client gave it.
    #[serde(default)]
    pub thread_source: Option<String>,
    /// True when it is loaded, else null.
    #[serde(default)]
    pub can_accept_direct_input: Option<bool>,
    /// Where its commands run; null when it is not loaded.
    #[serde(default)]
    pub environments: Option<Vec<ThreadEnvironment>>,
}

/// Whether the history of a thread can be read in pages of turns and items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadHistoryMode {
    Legacy,
    #[default]
    Paginated,
}

/// A place where the commands of a thread run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadEnvironment {
    pub environment_id: String,
    pub cwd: String,
    pub runtime_workspace_roots: Vec<String>,
}

/// Why an active thread is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadActiveFlag {
    WaitingOnApproval,
    WaitingOnUserInput,
}

/// The id of a thread, where the wire gives it a type of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ThreadId(pub String);

/// Whether a thread is loaded and working.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadStatus {
    NotLoaded,
    Idle,
    SystemError,
    Active { active_flags: Vec<ThreadActiveFlag> },
}

//! Listing and reading threads: `thread/list`, `thread/loaded/list`, `thread/read`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::{SortDirection, Thread, ThreadReadState};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadSortKey {
    CreatedAt,
    UpdatedAt,
    /// The time of the last turn.
    RecencyAt,
    /// The order inside a section.
    SectionPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadSourceKind {
    Cli,
    Vscode,
    Exec,
    AppServer,
    SubAgent,
    SubAgentReview,
    SubAgentCompact,
    SubAgentThreadSpawn,
    SubAgentOther,
    Unknown,
}

/// Params of `thread/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_key: Option<ThreadSortKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_providers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<CwdFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_term: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_direction: Option<SortDirection>,
    /// Threads of this section; their own order is `section_position`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_thread_ids: Option<Vec<String>>,
    /// Names of the clients that started the threads; any client without names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originators: Option<Vec<String>>,
    /// Threads of agents that this thread started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<String>,
    /// Threads of agents that this thread, or one of them, started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ancestor_thread_id: Option<String>,
    /// Forks that were attached to this thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_to_thread_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Lists are answered from the index in any case.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub use_state_db_only: bool,
}

/// One working directory, or (from newer clients) any of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CwdFilter {
    One(String),
    Any(Vec<String>),
}

/// The schema describes the form that every release accepts.
impl JsonSchema for CwdFilter {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CwdFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Params of `thread/loaded/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadLoadedListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Params of `thread/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadParams {
    pub thread_id: String,
    #[serde(default)]
    pub include_turns: bool,
}

/// Result of `thread/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadListResponse {
    pub data: Vec<Thread>,
    pub next_cursor: Option<String>,
    /// For the opposite direction: begins with the first thread of this page.
    #[serde(default)]
    pub backwards_cursor: Option<String>,
    /// The read state of each thread of the page.
    #[serde(default)]
    pub read_states: Option<BTreeMap<String, ThreadReadState>>,
}

/// Result of `thread/loaded/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLoadedListResponse {
    pub data: Vec<String>,
    pub next_cursor: Option<String>,
}

/// Result of `thread/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    pub thread: Thread,
    /// Null before the first message, and for ephemeral threads.
    #[serde(default)]
    pub read_state: Option<ThreadReadState>,
    /// The event right after which the thread is as this answer shows it. For clients that announced `eventIds`, while
    /// the thread is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

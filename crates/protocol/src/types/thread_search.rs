//! Searching threads and reading parts of them: `thread/search`, `thread/searchOccurrences`, `thread/items/read`,
//! `thread/timeline/list`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{JsonValue, SortDirection, Thread, ThreadItem, ThreadItemEntry, ThreadSourceKind, TurnError, TurnStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadSearchSortKey {
    CreatedAt,
    UpdatedAt,
    RecencyAt,
}

/// Params of `thread/search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchParams {
    pub search_term: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_direction: Option<SortDirection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_key: Option<ThreadSearchSortKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
}

/// A thread that holds the term, and the first hit with its surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSearchResult {
    pub thread: Thread,
    pub snippet: String,
}

/// Result of `thread/search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchResponse {
    pub data: Vec<ThreadSearchResult>,
    pub next_cursor: Option<String>,
    pub backwards_cursor: Option<String>,
}

/// Params of `thread/searchOccurrences`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrencesParams {
    pub thread_id: String,
    pub search_term: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A part of a text, in UTF-16 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSearchTextRange {
    pub start: u32,
    pub end: u32,
}

/// One hit in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrence {
    pub turn_id: String,
    pub item_id: String,
    pub snippet: String,
    /// The hit inside the snippet.
    pub snippet_match_range: ThreadSearchTextRange,
    /// A cursor of `thread/turns/list`: the page begins with the hit's turn.
    pub turn_cursor: String,
}

/// Result of `thread/searchOccurrences`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSearchOccurrencesResponse {
    pub data: Vec<ThreadSearchOccurrence>,
    pub next_cursor: Option<String>,
}

/// Params of `thread/items/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadItemsReadParams {
    pub thread_id: String,
    pub turn_id: String,
    pub item_ids: Vec<String>,
}

/// Result of `thread/items/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadItemsReadResponse {
    pub data: Vec<ThreadItemEntry>,
}

/// Params of `thread/timeline/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTimelineListParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One event of a thread's history, at its position in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[allow(clippy::large_enum_variant, reason = "most entries are items")]
pub enum ThreadTimelineEntry {
    TurnStarted {
        position: u64,
        turn_id: String,
        started_at: Option<i64>,
    },
    Item {
        position: u64,
        turn_id: String,
        item: ThreadItem,
    },
    TurnCompleted {
        position: u64,
        turn_id: String,
        status: TurnStatus,
        error: Option<TurnError>,
        started_at: Option<i64>,
        completed_at: Option<i64>,
        duration_ms: Option<i64>,
    },
    Realtime {
        position: u64,
        item: JsonValue,
    },
}

/// Result of `thread/timeline/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTimelineListResponse {
    /// In ascending order of position.
    pub data: Vec<ThreadTimelineEntry>,
    /// Continues with older entries.
    pub next_cursor: Option<String>,
    pub active_realtime_session_at_page_start: Option<String>,
}

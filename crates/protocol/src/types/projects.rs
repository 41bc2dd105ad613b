//! Projects: `project/*`. Newer than 0.118.0.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AbsolutePathBuf, SortDirection};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRoot {
    pub path: AbsolutePathBuf,
}

/// A named group of threads with folders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    pub id: String,
    pub name: String,
    pub roots: Vec<ProjectRoot>,
    pub metadata: BTreeMap<String, String>,
    pub position: i64,
    pub created_at: i64,
    pub updated_at: i64,
    /// The latest `recencyAt` of its threads.
    pub recency_at: Option<i64>,
}

/// Params of `project/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectCreateParams {
    pub idempotency_key: String,
    pub name: String,
    pub roots: Vec<ProjectRoot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// Params of `project/import`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectImportParams {
    pub idempotency_key: String,
    pub name: String,
    pub roots: Vec<ProjectRoot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Ids of the threads that are assigned to the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<String>>,
}

/// Result of `project/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectCreateResponse {
    pub project: Project,
    /// The key was used before, with these params or others: nothing was created.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub replayed: bool,
}

/// Result of `project/import`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectImportResponse {
    pub project: Project,
    /// The key was used before, with these params or others: nothing was created or assigned.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub replayed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProjectSortKey {
    Position,
    RecencyAt,
}

/// Params of `project/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_key: Option<ProjectSortKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_direction: Option<SortDirection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `project/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectListResponse {
    pub data: Vec<Project>,
    pub next_cursor: Option<String>,
}

/// Params of `project/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectReadParams {
    pub project_id: String,
}

/// Result of `project/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectReadResponse {
    pub project: Project,
}

/// Params of `project/update`. What is absent or null stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectUpdateParams {
    pub project_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<ProjectRoot>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// Result of `project/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectUpdateResponse {
    pub project: Project,
}

/// Params of `project/move`: before another project, or to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectMoveParams {
    pub project_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_project_id: Option<String>,
}

/// Result of `project/move`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectMoveResponse {}

/// Params of `project/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectDeleteParams {
    pub project_id: String,
}

/// Result of `project/delete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectDeleteResponse {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProjectChangeType {
    Created,
    Updated,
    Deleted,
}

/// Params of the `project/changed` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectChangedNotification {
    pub project_id: String,
    pub change_type: ProjectChangeType,
}

/// Params of the `thread/project/updated` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadProjectUpdatedNotification {
    pub thread_id: String,
    /// Null when the thread is in no project any more.
    pub project_id: Option<String>,
}

//! Sections of the list of threads: `threadSection/*`, `thread/section/move`. Newer than 0.118.0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The icon and the colour of a section, as free text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionAppearance {
    #[serde(default)]
    pub icon: Option<String>,
    #[serde(default)]
    pub color: Option<String>,
}

/// A named group of threads with an order of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSection {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub appearance: Option<ThreadSectionAppearance>,
}

/// Params of `threadSection/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `threadSection/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionListResponse {
    pub data: Vec<ThreadSection>,
    pub next_cursor: Option<String>,
}

/// Params of `threadSection/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionCreateParams {
    pub name: String,
    #[serde(default)]
    pub appearance: Option<ThreadSectionAppearance>,
}

/// Result of `threadSection/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionCreateResponse {
    pub section: ThreadSection,
}

/// Params of `threadSection/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionUpdateParams {
    pub section_id: String,
    pub name: String,
    /// Absent keeps the appearance, null clears it.
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub appearance: Option<Option<ThreadSectionAppearance>>,
}

/// Result of `threadSection/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionUpdateResponse {
    pub section: ThreadSection,
}

/// Params of `threadSection/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionDeleteParams {
    pub section_id: String,
}

/// Result of `threadSection/delete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionDeleteResponse {}

/// Params of `thread/section/move`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSectionMoveParams {
    pub thread_id: String,
    /// Null takes the thread out of its section.
    #[serde(deserialize_with = "crate::serde_util::nullable")]
    pub section_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_thread_id: Option<String>,
}

/// Result of `thread/section/move`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSectionMoveResponse {}

//! The goal of a thread: an objective that the server works on, turn after turn, while the thread is idle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a goal is. Only an `active` one starts turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadGoalStatus {
    Active,
    Paused,
    Blocked,
    UsageLimited,
    BudgetLimited,
    Complete,
}

/// Why an active goal starts no turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadGoalStall {
    /// Its last turn was interrupted. It goes on after another turn, or when it is set to `active`.
    Interrupted,
    /// A fork took it along. It goes on after the fork's first turn.
    Deferred,
}

/// The goal of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoal {
    pub thread_id: String,
    pub objective: String,
    pub status: ThreadGoalStatus,
    pub token_budget: Option<i64>,
    pub tokens_used: i64,
    pub time_used_seconds: i64,
    pub created_at: i64,
    pub updated_at: i64,
    /// Present while an active goal starts no turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<ThreadGoalStall>,
}

/// Who changed a goal, as the client says. It has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ThreadGoalMutationOrigin {
    User,
    Automatic,
}

/// Params of `thread/goal/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ThreadGoalStatus>,
    /// Absent keeps the budget, null removes it.
    #[serde(default, deserialize_with = "crate::serde_util::double_option", skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<ThreadGoalMutationOrigin>,
}

/// Result of `thread/goal/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadGoalSetResponse {
    pub goal: ThreadGoal,
}

/// Params of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetParams {
    pub thread_id: String,
}

/// Result of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadGoalGetResponse {
    pub goal: Option<ThreadGoal>,
}

/// Params of `thread/goal/clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearParams {
    pub thread_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<ThreadGoalMutationOrigin>,
}

/// Result of `thread/goal/clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadGoalClearResponse {
    pub cleared: bool,
}

/// Params of the `thread/goal/updated` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalUpdatedNotification {
    pub thread_id: String,
    /// The turn that changed the goal; null when a client did.
    pub turn_id: Option<String>,
    pub goal: ThreadGoal,
}

/// Params of the `thread/goal/cleared` notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearedNotification {
    pub thread_id: String,
}

//! `[goals]`: limits of the goals of threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Goals {
    /// The largest token budget of a goal. A goal without a budget gets it.
    pub max_goal_token_budget: Option<i64>,
    /// The most turns that a goal starts; then it is blocked. Default: no limit.
    pub max_turns: Option<u32>,
    /// The most turns of a goal in a row in which the model calls no tool; then it is blocked. Default: 10.
    pub max_idle_turns: Option<u32>,
    /// The pause between two turns of a goal in milliseconds. Default: 0.
    pub min_turn_pause_ms: Option<u64>,
}

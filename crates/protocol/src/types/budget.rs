//! `budget` of `thread/start` and `turn/start`: an extension of this server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a thread, with its child agents, or a turn may spend. A limit that is absent or null does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Budget {
    /// Tokens of input and output, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars, as far as `[loomd.prices]` has prices.
    #[serde(deserialize_with = "crate::serde_util::amount", skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Wall time of turns, approvals included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

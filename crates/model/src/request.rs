//! What one call of a model is told.

use std::sync::Arc;

use loomd_protocol::{JsonValue, ReasoningEffort, ReasoningSummary, ServiceTier, Verbosity};

use crate::{InputItem, Tools};

#[derive(Clone, Debug)]
pub struct Request {
    pub model: String,
    pub instructions: Arc<str>,
    pub input: Vec<InputItem>,
    pub tools: Arc<Tools>,
    pub parallel_tool_calls: bool,
    /// `None` for a model that does not reason.
    pub reasoning: Option<Reasoning>,
    pub verbosity: Option<Verbosity>,
    /// The JSON Schema that the answer has to follow.
    pub output_schema: Option<JsonValue>,
    pub service_tier: Option<ServiceTier>,
    pub prompt_cache_key: String,
    pub headers: CallHeaders,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    pub effort: Option<ReasoningEffort>,
    /// `None`, and the value of that name, ask for no summary.
    pub summary: Option<ReasoningSummary>,
}

/// What is said beside the body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallHeaders {
    /// The thread.
    pub session_id: String,
    /// JSON.
    pub turn_metadata: Option<String>,
    /// What the provider said earlier in this turn.
    pub turn_state: Option<String>,
    pub subagent: Option<String>,
    pub beta_features: Option<String>,
}

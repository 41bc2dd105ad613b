//! The request of one model call.

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
    /// The JSON Schema of the final message.
    pub output_schema: Option<JsonValue>,
    pub service_tier: Option<ServiceTier>,
    pub prompt_cache_key: String,
    pub headers: CallHeaders,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    pub effort: Option<ReasoningEffort>,
    /// `None` and `ReasoningSummary::None` request no summary.
    pub summary: Option<ReasoningSummary>,
}

/// Values that are sent as headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallHeaders {
    /// The thread id.
    pub session_id: String,
    /// A JSON object.
    pub turn_metadata: Option<String>,
    /// What the provider returned earlier in the same turn.
    pub turn_state: Option<String>,
    pub subagent: Option<String>,
    pub beta_features: Option<String>,
    /// The place of the call in a trace; sent with requests, not with the handshake of a websocket, which serves many.
    pub trace: Option<TraceHeaders>,
}

/// The headers of the W3C Trace Context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceHeaders {
    pub traceparent: String,
    pub tracestate: Option<String>,
}

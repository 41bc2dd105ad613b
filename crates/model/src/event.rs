//! What comes back from a model: one stream of events, the same for every provider and wire.

use loomd_protocol::{RateLimitSnapshot, ResponseItem};

use crate::{ModelError, TokenUsage};

#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Always the first.
    Headers(ResponseHeaders),
    ItemAdded {
        item: ResponseItem,
        id: Option<String>,
        output_index: Option<u64>,
    },
    ItemDone {
        item: ResponseItem,
        id: Option<String>,
        output_index: Option<u64>,
    },
    TextDelta {
        item_id: Option<String>,
        delta: String,
    },
    SummaryPartAdded {
        item_id: Option<String>,
        index: i64,
    },
    SummaryDelta {
        item_id: Option<String>,
        index: i64,
        delta: String,
    },
    ReasoningDelta {
        item_id: Option<String>,
        index: i64,
        delta: String,
    },
    /// The model that really answers, when an event says so.
    ServerModel(String),
    RateLimits(RateLimitSnapshot),
    /// Always the last.
    Completed {
        response_id: String,
        usage: Option<TokenUsage>,
    },
}

/// What the head of the answer says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseHeaders {
    /// The model that really answers.
    pub model: Option<String>,
    pub turn_state: Option<String>,
    /// Past reasoning is counted by the provider.
    pub reasoning_included: bool,
    pub models_etag: Option<String>,
    pub rate_limits: Vec<RateLimitSnapshot>,
}

/// The events of one call. Dropping it cancels the call.
pub struct Events {
    _private: (),
}

impl Events {
    /// The next event; `None` after the last one or after an error. Nothing is lost when the future is
    /// dropped before it is ready.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        None
    }

    /// The next event if it can be had without waiting.
    pub fn try_next_ready(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        None
    }
}

//! What comes back from a model: one stream of events, the same for every provider and wire.

use std::future::poll_fn;
use std::task::{Context, Poll};

use loomd_protocol::{RateLimitSnapshot, ResponseItem};

use crate::{ModelError, TokenUsage};

#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Always the first.
    Headers(ResponseHeaders),
    /// The ids of items stand beside them because the protocol's own types do not keep them all.
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
    /// A piece of the text of a message.
    TextDelta {
        item_id: Option<String>,
        delta: String,
    },
    SummaryPartAdded {
        item_id: Option<String>,
        index: i64,
    },
    /// A piece of a summary of the reasoning.
    SummaryDelta {
        item_id: Option<String>,
        index: i64,
        delta: String,
    },
    /// A piece of the reasoning itself.
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
    /// To be sent back with the other calls of the same turn.
    pub turn_state: Option<String>,
    /// Past reasoning is counted by the provider.
    pub reasoning_included: bool,
    /// Changes when the provider's list of models does.
    pub models_etag: Option<String>,
    pub rate_limits: Vec<RateLimitSnapshot>,
}

/// The events of one call. Dropping it cancels the call.
pub struct Events(Box<dyn EventSource>);

/// One wire's way of getting events.
pub(crate) trait EventSource: Send {
    /// An event that can be had from the bytes at hand.
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>>;

    /// The next event; `None` after the last one and after an error.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>>;
}

impl Events {
    pub(crate) fn new(source: impl EventSource + 'static) -> Self {
        Self(Box::new(source))
    }

    /// The next event; `None` after the last one and after an error. Nothing is lost when the future is
    /// dropped before it is ready.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        poll_fn(|cx| self.0.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        self.0.poll_next(cx)
    }

    /// The next event if it has come already. `None` says nothing about the end.
    pub fn try_next_ready(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.0.buffered()
    }
}

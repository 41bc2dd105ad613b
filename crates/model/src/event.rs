//! The events of a model call, the same for every provider and wire.

use std::future::poll_fn;
use std::task::{Context, Poll};

use loomd_protocol::{JsonValue, RateLimitSnapshot, ResponseItem};

use crate::meter::MeteredCall;
use crate::{ModelError, TokenUsage};

#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Always the first event.
    Headers(ResponseHeaders),
    /// Item ids are separate fields, because the protocol's item types do not carry all of them.
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
    /// A fragment of a message's text.
    TextDelta {
        item_id: Option<String>,
        delta: String,
    },
    SummaryPartAdded {
        item_id: Option<String>,
        index: i64,
    },
    /// A fragment of a reasoning summary.
    SummaryDelta {
        item_id: Option<String>,
        index: i64,
        delta: String,
    },
    /// A fragment of the reasoning itself.
    ReasoningDelta {
        item_id: Option<String>,
        index: i64,
        delta: String,
    },
    /// The model that serves the call, if an event names it.
    ServerModel(String),
    RateLimits(RateLimitSnapshot),
    /// What the provider's moderation says about the turn, for the client.
    Moderation(JsonValue),
    /// A fragment of the input of a custom tool call.
    InputDelta {
        item_id: Option<String>,
        delta: String,
    },
    /// Always the last event.
    Completed {
        response_id: String,
        usage: Option<TokenUsage>,
    },
}

/// What the response headers carry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseHeaders {
    /// The model that serves the call.
    pub model: Option<String>,
    /// To be sent with the other calls of the same turn.
    pub turn_state: Option<String>,
    /// The provider counts past reasoning in its token usage.
    pub reasoning_included: bool,
    /// Changes whenever the provider's list of models does.
    pub models_etag: Option<String>,
    pub rate_limits: Vec<RateLimitSnapshot>,
}

/// The event stream of one call. Dropping it cancels the call.
pub struct Events {
    source: Box<dyn EventSource>,
    call: Option<MeteredCall>,
}

/// The source of events of one wire.
pub(crate) trait EventSource: Send {
    /// Returns an event that is available without I/O.
    fn buffered(&mut self) -> Option<Result<ModelEvent, ModelError>>;

    /// Returns the next event; `None` after the last one and after an error.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>>;
}

impl Events {
    pub(crate) fn new(source: impl EventSource + 'static) -> Self {
        Self { source: Box::new(source), call: None }
    }

    /// The same events, whose last one is reported.
    pub(crate) fn metered(self, call: MeteredCall) -> Self {
        Self { call: Some(call), ..self }
    }

    /// Returns the next event; `None` after the last one and after an error. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        let event = self.source.poll_next(cx);
        if let (Poll::Ready(event), Some(call)) = (&event, &mut self.call) {
            call.observe(event.as_ref());
        }
        event
    }

    /// Returns the next event if it has arrived. `None` does not mean the end of the stream.
    pub fn try_next_ready(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let event = self.source.buffered();
        if let (Some(_), Some(call)) = (&event, &mut self.call) {
            call.observe(event.as_ref());
        }
        event
    }
}

//! What started a turn.

use std::sync::Arc;

use loomd_telemetry::SpanContext;

use crate::metering::{Spending, TurnTotal};

/// What started a turn: the request of a client, or the turn of a parent agent. Empty for one that a thread started by
/// itself.
#[derive(Clone, Default)]
pub(crate) struct TurnOrigin {
    /// The turns of parent agents that the turn counts for.
    pub parents: Vec<Arc<TurnTotal>>,
    /// The span that the turn's is below.
    pub span: Option<SpanContext>,
}

impl TurnOrigin {
    /// The request of a client that is being served.
    pub fn of_request() -> Self {
        Self { parents: Vec::new(), span: loomd_telemetry::current() }
    }

    /// The turn of a parent agent, whose tool call is being run.
    pub fn of_parent(spending: &Spending) -> Self {
        Self { parents: spending.for_children(), span: loomd_telemetry::current() }
    }
}

//! A span while it is open.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::context::SpanContext;
use crate::pipeline::Queue;
use crate::record::{Attributes, Record, SpanKind, SpanRecord, Value};

/// An open span. One that is dropped before [`Span::end`] ends as cancelled. Without a trace exporter it is empty and
/// does nothing.
#[derive(Default)]
pub struct Span(Option<Box<OpenSpan>>);

struct OpenSpan {
    queue: Arc<Queue>,
    name: &'static str,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    kind: SpanKind,
    at: u64,
    clock: Instant,
    attributes: Attributes,
}

/// How a span ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    Completed,
    /// With an error text, which must not have secrets or texts of the user.
    Failed(String),
    Cancelled,
}

impl Span {
    pub(crate) fn begin(
        queue: &Arc<Queue>,
        name: &'static str,
        kind: SpanKind,
        parent: Option<&SpanContext>,
        attributes: Attributes,
    ) -> Self {
        Self(Some(Box::new(OpenSpan {
            queue: Arc::clone(queue),
            name,
            context: SpanContext::child_of(parent),
            parent: parent.map(|parent| parent.span),
            kind,
            at: now(),
            clock: Instant::now(),
            attributes,
        })))
    }

    /// The parent of what belongs to this span; `None` when spans are not exported.
    pub fn context(&self) -> Option<&SpanContext> {
        self.0.as_ref().map(|open| &open.context)
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.attributes.push((name, value.into()));
        }
    }

    /// Ends the span. Does nothing when it has ended.
    pub fn end(&mut self, status: SpanStatus) {
        let Some(open) = self.0.take() else { return };
        if !open.context.sampled {
            return;
        }
        let OpenSpan { queue, name, context, parent, kind, at, clock, mut attributes } = *open;
        let (outcome, error) = match status {
            SpanStatus::Completed => ("completed", None),
            SpanStatus::Failed(error) => ("failed", Some(error)),
            SpanStatus::Cancelled => ("cancelled", None),
        };
        attributes.push(("outcome", Value::Name(outcome)));
        let ended = at.saturating_add(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX));
        queue.push(Record::Span(SpanRecord { name, context, parent, kind, begun: at, ended, attributes, error }));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.end(SpanStatus::Cancelled);
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

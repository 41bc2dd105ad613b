//! Spans, log events and metrics, exported over OTLP/HTTP to the collectors of `[otel]`.
//!
//! [`Telemetry`] is a handle that does nothing unless an exporter is configured. Records go into bounded queues and are
//! sent by tasks of their own, so nothing waits for a collector; what does not fit or cannot be sent is dropped and
//! counted.

mod collector;
mod context;
mod encode;
mod otlp;
mod pipeline;
mod record;
mod settings;
mod span;
mod telemetry;

pub use context::{SpanContext, current, within};
pub use record::{Attributes, Histogram, Metric, MetricKind, Point, Value};
pub use settings::{Resource, Settings, SettingsError};
pub use span::{Span, SpanStatus};
pub use telemetry::Telemetry;

//! What is known about a model call when it has ended, and who is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{ModelError, ModelEvent, Provider, TokenUsage};

/// A model call that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport {
    /// The id of the provider.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// `None` when the provider reported none.
    pub usage: Option<TokenUsage>,
    /// From the request to the last event.
    pub duration: Duration,
    pub outcome: CallOutcome,
    /// The HTTP status of a response that was an error.
    pub http_status: Option<u16>,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Completed,
    Failed,
    /// Its events were dropped before the last one.
    Cancelled,
}

/// Called once, when a model call has ended, before its caller gets the last event.
pub struct CallMeter(Box<dyn FnOnce(CallReport) + Send>);

impl CallMeter {
    pub fn new(report: impl FnOnce(CallReport) + Send + 'static) -> Self {
        Self(Box::new(report))
    }

    /// Drops the report.
    pub fn none() -> Self {
        Self::new(drop)
    }
}

/// A model call that is being made. Dropped before its end it reports that it was cancelled.
pub(crate) struct MeteredCall {
    provider: Arc<Provider>,
    model: String,
    begun: Instant,
    /// `None` once the end was reported.
    meter: Option<CallMeter>,
}

impl MeteredCall {
    pub fn begin(provider: &Arc<Provider>, model: &str, meter: CallMeter) -> Self {
        Self { provider: Arc::clone(provider), model: model.into(), begun: Instant::now(), meter: Some(meter) }
    }

    /// Reports the end of the call if this is its last event.
    pub fn observe(&mut self, event: Option<&Result<ModelEvent, ModelError>>) {
        match event {
            Some(Ok(ModelEvent::Completed { usage, .. })) => self.completed(usage.as_ref()),
            Some(Ok(_)) => {}
            Some(Err(error)) => self.failed(error),
            None => self.end(CallOutcome::Failed, None, None),
        }
    }

    pub fn completed(&mut self, usage: Option<&TokenUsage>) {
        self.end(CallOutcome::Completed, usage, None);
    }

    pub fn failed(&mut self, error: &ModelError) {
        self.end(CallOutcome::Failed, error.usage(), error.http_status());
    }

    fn end(&mut self, outcome: CallOutcome, usage: Option<&TokenUsage>, http_status: Option<u16>) {
        let Some(CallMeter(report)) = self.meter.take() else { return };
        report(CallReport {
            provider: self.provider.id().into(),
            model: std::mem::take(&mut self.model),
            usage: usage.cloned(),
            duration: self.begun.elapsed(),
            outcome,
            http_status,
        });
    }
}

impl Drop for MeteredCall {
    fn drop(&mut self) {
        self.end(CallOutcome::Cancelled, None, None);
    }
}

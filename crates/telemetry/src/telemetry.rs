//! The handle through which spans, log events and metrics are recorded.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use crate::collector::Collector;
use crate::context::SpanContext;
use crate::otlp;
use crate::pipeline::Queue;
use crate::record::{Attributes, LogRecord, Metric, Record, SpanKind, Value};
use crate::settings::{Settings, SharedResource};
use crate::span::{Span, now};

/// How often metrics are exported.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);

/// How long [`Telemetry::flush`] waits.
const FLUSH: Duration = Duration::from_secs(2);

/// Records spans, log events and metrics. A clone is the same handle; the default one does nothing.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<Exporters>>);

struct Exporters {
    resource: SharedResource,
    log_user_prompt: bool,
    parent: Option<SpanContext>,
    logs: Option<Arc<Queue>>,
    traces: Option<Arc<Queue>>,
    metrics: Mutex<Metrics>,
}

/// The exporter of metrics.
enum Metrics {
    Off,
    /// Until it is known where metrics are read.
    Waiting(Collector),
    Running(mpsc::Sender<oneshot::Sender<()>>),
}

impl Telemetry {
    /// Starts the tasks of the configured exporters; none when there are none. To be called inside of a runtime.
    pub fn start(settings: Settings) -> Self {
        if !settings.is_on() {
            return Self::default();
        }
        let resource: SharedResource = Arc::new(settings.resource);
        let queue = |collector: Option<Collector>| collector.map(|it| Queue::start(it, Arc::clone(&resource)));
        Self(Some(Arc::new(Exporters {
            log_user_prompt: settings.log_user_prompt,
            parent: settings.parent,
            logs: queue(settings.logs),
            traces: queue(settings.traces),
            metrics: Mutex::new(settings.metrics.map_or(Metrics::Off, Metrics::Waiting)),
            resource,
        })))
    }

    /// Whether log events are exported.
    pub fn logs(&self) -> bool {
        self.0.as_ref().is_some_and(|exporters| exporters.logs.is_some())
    }

    /// Whether log events may have texts of the user.
    pub fn log_user_prompt(&self) -> bool {
        self.0.as_ref().is_some_and(|exporters| exporters.log_user_prompt)
    }

    /// The version of the program, as exports name it.
    pub fn version(&self) -> &str {
        self.0.as_ref().map_or("", |exporters| &exporters.resource.version)
    }

    /// Begins a span that answers a request of a client: below that client's, else below that of the process, else as
    /// the root of a trace.
    pub fn server_span(&self, name: &'static str, parent: Option<&SpanContext>, attributes: Attributes) -> Span {
        let parent = parent.or_else(|| self.0.as_ref()?.parent.as_ref());
        self.span(name, SpanKind::Server, parent, attributes)
    }

    /// Begins a span of work inside of this program.
    pub fn internal_span(&self, name: &'static str, parent: Option<&SpanContext>, attributes: Attributes) -> Span {
        self.span(name, SpanKind::Internal, parent, attributes)
    }

    /// Begins a span of a request to another program.
    pub fn client_span(&self, name: &'static str, parent: Option<&SpanContext>, attributes: Attributes) -> Span {
        self.span(name, SpanKind::Client, parent, attributes)
    }

    fn span(&self, name: &'static str, kind: SpanKind, parent: Option<&SpanContext>, attributes: Attributes) -> Span {
        match self.0.as_ref().and_then(|exporters| exporters.traces.as_ref()) {
            Some(queue) => Span::begin(queue, name, kind, parent, attributes),
            None => Span::default(),
        }
    }

    /// Records a log event of a span. `attributes` is not called unless log events are exported.
    pub fn log(&self, name: &'static str, context: Option<&SpanContext>, attributes: impl FnOnce() -> Attributes) {
        let Some(queue) = self.0.as_ref().and_then(|exporters| exporters.logs.as_ref()) else { return };
        let mut attributes = attributes();
        let timestamp = format!("{:.3}", Timestamp::now());
        attributes.splice(0..0, [("event.name", Value::Name(name)), ("event.timestamp", timestamp.into())]);
        queue.push(Record::Log(LogRecord { name, at: now(), context: context.cloned(), attributes }));
    }

    /// Exports metrics from now on, read with `read`, if an exporter of metrics is configured.
    pub fn start_metrics(&self, read: impl Fn() -> Vec<Metric> + Send + 'static) {
        let Some(exporters) = &self.0 else { return };
        let mut metrics = exporters.metrics.lock();
        match std::mem::replace(&mut *metrics, Metrics::Off) {
            Metrics::Waiting(collector) => {
                let (flushes, requested) = mpsc::channel(1);
                tokio::spawn(export_metrics(collector, Arc::clone(&exporters.resource), read, requested));
                *metrics = Metrics::Running(flushes);
            }
            as_before => *metrics = as_before,
        }
    }

    /// Waits until everything that was recorded is sent or dropped, for a bounded time.
    pub async fn flush(&self) {
        let Some(exporters) = &self.0 else { return };
        let metrics = match &*exporters.metrics.lock() {
            Metrics::Running(flushes) => Some(flushes.clone()),
            Metrics::Off | Metrics::Waiting(_) => None,
        };
        let queue = async |queue: &Option<Arc<Queue>>| {
            if let Some(queue) = queue {
                queue.flush().await;
            }
        };
        let metrics = async {
            let (done, flushed) = oneshot::channel();
            if let Some(flushes) = metrics
                && flushes.send(done).await.is_ok()
            {
                _ = flushed.await;
            }
        };
        let all = async { tokio::join!(queue(&exporters.logs), queue(&exporters.traces), metrics) };
        _ = tokio::time::timeout(FLUSH, all).await;
    }

    /// Records that could not be sent, and those that wait to be.
    pub fn backlog(&self) -> (u64, usize) {
        let Some(exporters) = &self.0 else { return (0, 0) };
        let queues = || exporters.logs.iter().chain(&exporters.traces);
        (queues().map(|queue| queue.dropped()).sum(), queues().map(|queue| queue.queued()).sum())
    }

    /// Whether something is exported.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

/// Exports metrics at intervals and when a flush is requested, until the handles are dropped.
async fn export_metrics(
    mut collector: Collector,
    resource: SharedResource,
    read: impl Fn() -> Vec<Metric>,
    mut flushes: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let begun = now();
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + METRICS_INTERVAL, METRICS_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            _ = interval.tick() => None,
            done = flushes.recv() => match done {
                Some(done) => Some(done),
                None => return,
            },
        };
        let body = otlp::metrics(collector.protocol, &resource, &read(), begun, now());
        // A failure is logged; the next export has newer figures.
        _ = collector.export(body).await;
        if let Some(done) = done {
            _ = done.send(());
        }
    }
}

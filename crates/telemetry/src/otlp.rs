//! The export requests of OTLP 1: which record becomes which message.

use loomd_config::config_toml::OtelProtocol;

use crate::encode::{Encoder, Field};
use crate::record::{Attributes, Histogram, LogRecord, Metric, MetricKind, Point, Record, SpanRecord, Value};
use crate::settings::Resource;

/// The name of the instrumentation scope.
const SCOPE: &str = "loomd";

/// `SEVERITY_NUMBER_INFO`
const INFO: u32 = 9;
/// `STATUS_CODE_OK`, `STATUS_CODE_ERROR`
const OK: u32 = 1;
const ERROR: u32 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u32 = 2;

/// An `ExportTraceServiceRequest` or an `ExportLogsServiceRequest`. All records are of the kind of the first one.
pub(crate) fn records(protocol: OtelProtocol, resource: &Resource, records: &[Record]) -> Vec<u8> {
    let spans = matches!(records.first(), Some(Record::Span(_)));
    let (outer, scoped, inner) = match spans {
        true => (Field(1, "resourceSpans"), Field(2, "scopeSpans"), Field(2, "spans")),
        false => (Field(1, "resourceLogs"), Field(2, "scopeLogs"), Field(2, "logRecords")),
    };
    Encoder::encode(protocol, |request| {
        request.messages(outer, [()], |of_resource, ()| {
            write_resource(of_resource, resource, !spans);
            of_resource.messages(scoped, [()], |of_scope, ()| {
                write_scope(of_scope, resource);
                of_scope.messages(inner, records, |message, record| match record {
                    Record::Span(span) => write_span(message, span),
                    Record::Log(log) => write_log(message, log),
                });
            });
        });
    })
}

/// An `ExportMetricsServiceRequest`. `begun` is when the counters were 0, `now` is when the metrics were read.
pub(crate) fn metrics(
    protocol: OtelProtocol,
    resource: &Resource,
    metrics: &[Metric],
    begun: u64,
    now: u64,
) -> Vec<u8> {
    Encoder::encode(protocol, |request| {
        request.messages(Field(1, "resourceMetrics"), [()], |of_resource, ()| {
            write_resource(of_resource, resource, false);
            of_resource.messages(Field(2, "scopeMetrics"), [()], |of_scope, ()| {
                write_scope(of_scope, resource);
                of_scope.messages(Field(2, "metrics"), metrics, |message, metric| {
                    write_metric(message, metric, begun, now);
                });
            });
        });
    })
}

fn write_resource(message: &mut Encoder, resource: &Resource, logs: bool) {
    let text = |text: &str| Value::Text(text.into());
    let mut attributes: Attributes = vec![
        ("service.name", text(&resource.service)),
        ("service.version", text(&resource.version)),
        ("env", text(&resource.environment)),
    ];
    if let Some(host) = resource.host.as_ref().filter(|_| logs) {
        attributes.push(("host.name", text(host)));
    }
    message.message(Field(1, "resource"), |resource| write_attributes(resource, Field(1, "attributes"), &attributes));
}

fn write_scope(message: &mut Encoder, resource: &Resource) {
    message.message(Field(1, "scope"), |scope| {
        scope.text(Field(1, "name"), SCOPE);
        scope.text(Field(2, "version"), &resource.version);
    });
}

fn write_span(message: &mut Encoder, span: &SpanRecord) {
    message.id(Field(1, "traceId"), &span.context.trace);
    message.id(Field(2, "spanId"), &span.context.span);
    message.text(Field(3, "traceState"), &span.context.state);
    if let Some(parent) = &span.parent {
        message.id(Field(4, "parentSpanId"), parent);
    }
    message.text(Field(5, "name"), span.name);
    message.uint32(Field(6, "kind"), span.kind as u32);
    message.fixed64(Field(7, "startTimeUnixNano"), span.begun);
    message.fixed64(Field(8, "endTimeUnixNano"), span.ended);
    write_attributes(message, Field(9, "attributes"), &span.attributes);
    message.message(Field(15, "status"), |status| {
        status.text(Field(2, "message"), span.error.as_deref().unwrap_or_default());
        status.uint32(Field(3, "code"), if span.error.is_some() { ERROR } else { OK });
    });
}

fn write_log(message: &mut Encoder, log: &LogRecord) {
    message.fixed64(Field(1, "timeUnixNano"), log.at);
    message.uint32(Field(2, "severityNumber"), INFO);
    message.text(Field(3, "severityText"), "INFO");
    write_attributes(message, Field(6, "attributes"), &log.attributes);
    if let Some(context) = &log.context {
        message.id(Field(9, "traceId"), &context.trace);
        message.id(Field(10, "spanId"), &context.span);
    }
    message.fixed64(Field(11, "observedTimeUnixNano"), log.at);
    message.text(Field(12, "eventName"), log.name);
}

fn write_metric(message: &mut Encoder, metric: &Metric, begun: u64, now: u64) {
    message.text(Field(1, "name"), metric.name);
    message.text(Field(2, "description"), metric.description);
    let points = Field(1, "dataPoints");
    match &metric.kind {
        MetricKind::Gauge(values) => message.message(Field(5, "gauge"), |gauge| {
            gauge.messages(points, values, |message, point| write_number(message, point, 0, now));
        }),
        MetricKind::Counter(values) => message.message(Field(7, "sum"), |sum| {
            sum.messages(points, values, |message, point| write_number(message, point, begun, now));
            sum.uint32(Field(2, "aggregationTemporality"), CUMULATIVE);
            sum.boolean(Field(3, "isMonotonic"), true);
        }),
        MetricKind::Histogram(values) => message.message(Field(9, "histogram"), |histogram| {
            histogram.messages(points, values, |message, point| write_histogram(message, point, begun, now));
            histogram.uint32(Field(2, "aggregationTemporality"), CUMULATIVE);
        }),
    }
}

fn write_number(message: &mut Encoder, point: &Point<f64>, begun: u64, now: u64) {
    message.fixed64(Field(2, "startTimeUnixNano"), begun);
    message.fixed64(Field(3, "timeUnixNano"), now);
    message.double(Field(4, "asDouble"), point.value);
    write_attributes(message, Field(7, "attributes"), &point.attributes);
}

fn write_histogram(message: &mut Encoder, point: &Point<Histogram>, begun: u64, now: u64) {
    let Histogram { bounds, counts, sum } = &point.value;
    message.fixed64(Field(2, "startTimeUnixNano"), begun);
    message.fixed64(Field(3, "timeUnixNano"), now);
    message.fixed64(Field(4, "count"), counts.iter().sum());
    message.double(Field(5, "sum"), *sum);
    message.fixed64s(Field(6, "bucketCounts"), counts);
    message.doubles(Field(7, "explicitBounds"), bounds);
    write_attributes(message, Field(9, "attributes"), &point.attributes);
}

fn write_attributes(message: &mut Encoder, field: Field, attributes: &[(&'static str, Value)]) {
    message.messages(field, attributes, |pair, (key, value)| {
        pair.text(Field(1, "key"), key);
        pair.message(Field(2, "value"), |any| match value {
            Value::Name(text) => any.text_always(Field(1, "stringValue"), text),
            Value::Text(text) => any.text_always(Field(1, "stringValue"), text),
            Value::Bool(value) => any.boolean(Field(2, "boolValue"), *value),
            Value::Int(value) => any.int64(Field(3, "intValue"), *value),
        });
    });
}

//! The figures of the server, for `/metrics`, `server/diagnostics` and the exporter of metrics. Labels are bounded:
//! methods of the protocol, and names that are written here.

use std::fmt::Write as _;
use std::sync::Arc;

use loomd_agent::LATENCY_BOUNDS;
use loomd_telemetry::{Attributes, Histogram, Metric, MetricKind, Point, Value};

use crate::app::App;
use crate::nodes::Nodes;

type Labels<'a> = &'a [(&'static str, &'static str)];

fn gauge(name: &'static str, description: &'static str, value: usize) -> Metric {
    Metric { name, description, kind: MetricKind::Gauge(vec![point(&[], value as f64)]) }
}

fn counter(name: &'static str, description: &'static str, value: f64) -> Metric {
    Metric { name, description, kind: MetricKind::Counter(vec![point(&[], value)]) }
}

/// A counter with one value per value of a label.
fn counters(
    name: &'static str,
    description: &'static str,
    label: &'static str,
    values: impl IntoIterator<Item = (&'static str, u64)>,
) -> Metric {
    let points = values.into_iter().map(|(of, value)| point(&[(label, of)], value as f64));
    Metric { name, description, kind: MetricKind::Counter(points.collect()) }
}

fn point<T>(labels: Labels<'_>, value: T) -> Point<T> {
    let attributes: Attributes = labels.iter().map(|(name, value)| (*name, Value::Name(value))).collect();
    Point { attributes, value }
}

/// The figures at this moment.
pub(crate) fn figures(app: &App) -> Vec<Metric> {
    let threads = app.threads();
    let metering = app.agent.metering();
    let spent = metering.counts.snapshot();
    let (lost, queued) = metering.backlog();
    let (unsent, unsent_bytes) = app.connections.queued();
    let requests = app.requests.ended().into_iter().flat_map(|(method, ended)| {
        let outcomes = [("ok", ended.answered), ("error", ended.refused)];
        let there = outcomes.into_iter().filter(|(_, count)| *count > 0);
        there.map(move |(outcome, count)| point(&[("method", method), ("outcome", outcome)], count as f64))
    });
    let calls = spent.calls.iter().filter(|calls| calls.count > 0);
    let calls = calls.map(|it| point(&[("purpose", it.purpose), ("outcome", it.outcome.name())], it.count as f64));
    let latencies = metering.store.snapshot().map(|latency| {
        let sum = latency.sum.as_secs_f64();
        point(&[("operation", latency.operation)], Histogram { bounds: LATENCY_BOUNDS, counts: latency.counts, sum })
    });
    let tokens = spent.tokens;
    let kinds = [
        ("input", tokens.input),
        ("cached_input", tokens.cached_input),
        ("cache_write_input", tokens.cache_write_input),
        ("output", tokens.output),
        ("reasoning_output", tokens.reasoning_output),
    ];
    let mut figures = vec![
        gauge("loomd_connections", "Connected clients.", app.connections.ids().len()),
        gauge("loomd_requests_in_flight", "Requests in progress.", app.requests.in_flight()),
        Metric {
            name: "loomd_requests_total",
            description: "Requests that ended, by method and outcome.",
            kind: MetricKind::Counter(requests.collect()),
        },
        gauge("loomd_outbound_queue_messages", "Messages that wait to be sent to clients.", unsent),
        gauge("loomd_outbound_queue_bytes", "Bytes that wait to be sent to clients.", unsent_bytes),
        gauge("loomd_threads_loaded", "Loaded threads.", threads.loaded().len()),
        gauge("loomd_thread_queue_requests", "Requests that wait for the tasks of threads.", threads.queued_requests()),
        gauge("loomd_inbox_inputs", "Input that waits for running turns.", metering.inbox_inputs()),
        gauge("loomd_event_log_bytes", "Events that are kept for clients that reconnect.", threads.event_log_bytes()),
        gauge("loomd_turns_running", "Turns that are running.", threads.running_turns()),
        counters(
            "loomd_turns_total",
            "Turns that ended, by outcome.",
            "outcome",
            spent.turns.map(|(outcome, count)| (outcome.name(), count)),
        ),
        counter("loomd_budget_stops_total", "Turns that a budget ended.", spent.budget_stops as f64),
        Metric {
            name: "loomd_model_calls_total",
            description: "Model calls that ended, by purpose and outcome.",
            kind: MetricKind::Counter(calls.collect()),
        },
        counter("loomd_model_call_seconds_total", "The time that model calls took.", spent.call_time.as_secs_f64()),
        counters("loomd_tokens_total", "Tokens that providers reported, by kind.", "kind", kinds),
        counter(
            "loomd_price_dollars_total",
            "The price of model calls that have a configured one.",
            spent.money.dollars(),
        ),
        counters(
            "loomd_tool_calls_total",
            "Tool calls that ended, by outcome.",
            "outcome",
            spent.tool_calls.map(|(outcome, count)| (outcome.name(), count)),
        ),
        gauge("loomd_programs_running", "Programs that are running.", loomd_exec::running_programs()),
        gauge("loomd_mcp_servers_running", "MCP servers that are running.", threads.running_mcp_servers()),
        Metric {
            name: "loomd_store_append_seconds",
            description: "How long appends to rollouts took, by whether they were synced to the disk.",
            kind: MetricKind::Histogram(latencies.into()),
        },
        gauge("loomd_ledger_queue", "Ledger entries that wait to be written.", queued),
        counter("loomd_ledger_lost_total", "Ledger entries that could not be written.", lost as f64),
    ];
    if let Some(nodes) = &app.nodes {
        figures.extend(node_figures(nodes));
    }
    let telemetry = app.agent.telemetry();
    if telemetry.is_on() {
        let (dropped, queued) = telemetry.backlog();
        figures.push(gauge("loomd_telemetry_queue", "Spans and log events that wait to be exported.", queued));
        let help = "Spans and log events that could not be exported.";
        figures.push(counter("loomd_telemetry_dropped_total", help, dropped as f64));
    }
    if let Some(bytes) = resident_memory() {
        let kind = MetricKind::Gauge(vec![point(&[], bytes as f64)]);
        figures.push(Metric { name: "process_resident_memory_bytes", description: "Resident memory.", kind });
    }
    figures
}

/// The figures of a node and of the database that it shares.
fn node_figures(nodes: &Nodes) -> Vec<Metric> {
    let counted = nodes.counted();
    let pool = nodes.pool();
    vec![
        gauge("loomd_nodes_live", "Live nodes of the store, this one included.", nodes.known.all().len() + 1),
        gauge("loomd_node_session_live", "Whether the session of this node counts.", usize::from(nodes.live.is_live())),
        gauge("loomd_node_threads_owned", "Threads that this node owns.", counted.owned),
        gauge("loomd_node_links", "Connections to other nodes for clients of this one.", counted.links),
        gauge(
            "loomd_node_requests_routed",
            "Requests that are on their way to the node of their thread.",
            counted.requests,
        ),
        counter("loomd_node_requests_forwarded_total", "Requests sent to other nodes.", counted.forwarded as f64),
        counter("loomd_node_takeovers_total", "Threads that this node took over.", counted.taken_over as f64),
        counter("loomd_node_threads_lost_total", "Loaded threads that this node had to stop.", counted.stopped as f64),
        gauge("loomd_store_connections", "Open connections to the database.", pool.connections),
        gauge("loomd_store_connections_max", "The most connections to the database.", pool.limit),
        gauge("loomd_store_connections_waited_for", "Operations that wait for a connection.", pool.waiting),
    ]
}

/// Exports the figures from now on, if an exporter of metrics is configured.
pub fn start_metrics(app: &Arc<App>) {
    let metered = Arc::downgrade(app);
    let read = move || metered.upgrade().map(|app| figures(&app)).unwrap_or_default();
    app.agent.telemetry().start_metrics(read);
}

/// The values of a figure as single numbers, each with the end of its name: the labels as the text format spells them,
/// after a suffix for parts of a histogram.
pub(crate) fn values(figure: &Metric) -> Vec<(String, f64)> {
    match &figure.kind {
        MetricKind::Counter(points) | MetricKind::Gauge(points) => {
            points.iter().map(|point| (labels(&point.attributes, None), point.value)).collect()
        }
        MetricKind::Histogram(points) => points.iter().flat_map(histogram_values).collect(),
    }
}

fn histogram_values(Point { attributes, value }: &Point<Histogram>) -> Vec<(String, f64)> {
    let mut sum = 0;
    let bounds = value.bounds.iter().map(ToString::to_string).chain(["+Inf".into()]);
    let mut values: Vec<_> = bounds
        .zip(&value.counts)
        .map(|(bound, count)| {
            sum += count;
            (format!("_bucket{}", labels(attributes, Some(&bound))), sum as f64)
        })
        .collect();
    let plain = labels(attributes, None);
    values.push((format!("_sum{plain}"), value.sum));
    values.push((format!("_count{plain}"), sum as f64));
    values
}

/// Labels as the text format spells them: empty, or `{kind="input"}`. `le` is the bound of a bucket.
fn labels(attributes: &Attributes, le: Option<&str>) -> String {
    let pair = |(name, value): &(&'static str, Value)| match value {
        Value::Name(text) => format!("{name}=\"{text}\""),
        other => format!("{name}=\"{other:?}\""),
    };
    let pairs: Vec<String> = attributes.iter().map(pair).chain(le.map(|bound| format!("le=\"{bound}\""))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

/// The figures in the text format of Prometheus.
pub(crate) fn render(figures: &[Metric]) -> String {
    let mut text = String::new();
    for figure in figures {
        let kind = match figure.kind {
            MetricKind::Counter(_) => "counter",
            MetricKind::Gauge(_) => "gauge",
            MetricKind::Histogram(_) => "histogram",
        };
        let name = figure.name;
        _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n", figure.description);
        for (rest, value) in values(figure) {
            _ = writeln!(text, "{name}{rest} {value}");
        }
    }
    text
}

/// The resident memory of this process, where the system tells.
pub(crate) fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rendered_as_prometheus_reads_them() {
        let histogram = Histogram { bounds: &[0.1, 1.0], counts: vec![2, 0, 1], sum: 7.5 };
        let figures = [
            gauge("a", "An a.", 3),
            counters("b_total", "Bs.", "kind", [("x", 1), ("y", 20_000_000)]),
            counter("c_total", "Cs.", 0.25),
            Metric {
                name: "d",
                description: "Ds.",
                kind: MetricKind::Histogram(vec![point(&[("operation", "sync")], histogram)]),
            },
        ];
        let expected = "# HELP a An a.\n# TYPE a gauge\na 3\n\
            # HELP b_total Bs.\n# TYPE b_total counter\nb_total{kind=\"x\"} 1\nb_total{kind=\"y\"} 20000000\n\
            # HELP c_total Cs.\n# TYPE c_total counter\nc_total 0.25\n\
            # HELP d Ds.\n# TYPE d histogram\nd_bucket{operation=\"sync\",le=\"0.1\"} 2\n\
            d_bucket{operation=\"sync\",le=\"1\"} 2\nd_bucket{operation=\"sync\",le=\"+Inf\"} 3\n\
            d_sum{operation=\"sync\"} 7.5\nd_count{operation=\"sync\"} 3\n";
        assert_eq!(render(&figures), expected);
    }
}

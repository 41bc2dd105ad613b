//! The figures of the server, for `/metrics` and `server/diagnostics`. Labels are bounded: methods of the protocol, and
//! names that are written here.

use std::fmt::Write as _;

use crate::app::App;

/// A figure, with one value per set of labels.
pub(crate) struct Figure {
    pub name: &'static str,
    help: &'static str,
    kind: Kind,
    pub values: Vec<Labelled>,
}

/// A value, with labels as the text format spells them: empty, or `{kind="input"}`.
pub(crate) struct Labelled {
    pub labels: String,
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only ever grows while the process runs.
    Counter,
    Gauge,
}

impl Figure {
    fn one(kind: Kind, name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind, values: vec![Labelled { labels: String::new(), value }] }
    }

    fn by<'a>(
        name: &'static str,
        help: &'static str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Self {
        let labelled = |(of, value): (&str, u64)| Labelled { labels: labels(&[(label, of)]), value: value as f64 };
        Self { name, help, kind: Kind::Counter, values: values.into_iter().map(labelled).collect() }
    }
}

fn labels(labels: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("{{{}}}", pairs.join(","))
}

/// The figures at this moment.
pub(crate) fn figures(app: &App) -> Vec<Figure> {
    use Kind::{Counter, Gauge};
    let threads = app.threads();
    let metering = app.agent.metering();
    let spent = metering.counts.snapshot();
    let (lost, queued) = metering.backlog();
    let requests = app.requests.ended().into_iter().flat_map(|(method, ended)| {
        [("ok", ended.answered), ("error", ended.refused)].into_iter().filter(|(_, count)| *count > 0).map(
            move |(outcome, count)| Labelled {
                labels: labels(&[("method", method), ("outcome", outcome)]),
                value: count as f64,
            },
        )
    });
    let calls = spent.calls.iter().filter(|calls| calls.count > 0).map(|calls| Labelled {
        labels: labels(&[("purpose", calls.purpose), ("outcome", calls.outcome.name())]),
        value: calls.count as f64,
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
        Figure::one(Gauge, "loomd_connections", "Connected clients.", app.connections.ids().len() as f64),
        Figure::one(Gauge, "loomd_requests_in_flight", "Requests in progress.", app.requests.in_flight() as f64),
        Figure {
            name: "loomd_requests_total",
            help: "Requests that ended, by method and outcome.",
            kind: Counter,
            values: requests.collect(),
        },
        Figure::one(Gauge, "loomd_threads_loaded", "Loaded threads.", threads.loaded().len() as f64),
        Figure::one(Gauge, "loomd_turns_running", "Turns that are running.", threads.running_turns() as f64),
        Figure::by(
            "loomd_turns_total",
            "Turns that ended, by outcome.",
            "outcome",
            spent.turns.map(|(outcome, count)| (outcome.name(), count)),
        ),
        Figure::one(Counter, "loomd_budget_stops_total", "Turns that a budget ended.", spent.budget_stops as f64),
        Figure {
            name: "loomd_model_calls_total",
            help: "Model calls that ended, by purpose and outcome.",
            kind: Counter,
            values: calls.collect(),
        },
        Figure::one(
            Counter,
            "loomd_model_call_seconds_total",
            "The time that model calls took.",
            spent.call_time.as_secs_f64(),
        ),
        Figure::by("loomd_tokens_total", "Tokens that providers reported, by kind.", "kind", kinds),
        Figure::one(
            Counter,
            "loomd_price_dollars_total",
            "The price of model calls that have a configured one.",
            spent.money.dollars(),
        ),
        Figure::by(
            "loomd_tool_calls_total",
            "Tool calls that ended, by outcome.",
            "outcome",
            spent.tool_calls.map(|(outcome, count)| (outcome.name(), count)),
        ),
        Figure::one(Gauge, "loomd_ledger_queue", "Ledger entries that wait to be written.", queued as f64),
        Figure::one(Counter, "loomd_ledger_lost_total", "Ledger entries that could not be written.", lost as f64),
    ];
    if let Some(bytes) = resident_memory() {
        figures.push(Figure::one(Gauge, "process_resident_memory_bytes", "Resident memory.", bytes as f64));
    }
    figures
}

/// The figures in the text format of Prometheus.
pub(crate) fn render(figures: &[Figure]) -> String {
    let mut text = String::new();
    for figure in figures {
        let kind = match figure.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let name = figure.name;
        _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n", figure.help);
        for Labelled { labels, value } in &figure.values {
            _ = writeln!(text, "{name}{labels} {value}");
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
        let figures = [
            Figure::one(Kind::Gauge, "a", "An a.", 3.0),
            Figure::by("b_total", "Bs.", "kind", [("x", 1), ("y", 20_000_000)]),
            Figure::one(Kind::Counter, "c_total", "Cs.", 0.25),
        ];
        let expected = "# HELP a An a.\n# TYPE a gauge\na 3\n\
            # HELP b_total Bs.\n# TYPE b_total counter\nb_total{kind=\"x\"} 1\nb_total{kind=\"y\"} 20000000\n\
            # HELP c_total Cs.\n# TYPE c_total counter\nc_total 0.25\n";
        assert_eq!(render(&figures), expected);
    }
}

use std::time::Duration;

use loomd_telemetry::{Histogram, Metric, MetricKind, Point, SpanContext, SpanStatus, Telemetry};
use loomd_testkit::{Collector, Posted};
use serde_json::{Value, json};

use crate::decode::Message;
use crate::started::telemetry;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

const JSON: &str = "[otel]
environment = 'test'
exporter.otlp-http = { endpoint = 'URL/l?k=1', protocol = 'json', headers = { authorization = 'Bearer t' } }
trace_exporter.otlp-http = { endpoint = 'URL/t', protocol = 'json' }
metrics_exporter.otlp-http = { endpoint = 'URL/m', protocol = 'json' }
";

/// The attributes of a JSON message by name.
fn attributes(message: &Value) -> Value {
    let pairs = message["attributes"].as_array().unwrap().iter();
    let value = |pair: &Value| pair["value"].as_object().unwrap().values().next().unwrap().clone();
    pairs.map(|pair| (pair["key"].as_str().unwrap().to_owned(), value(pair))).collect::<serde_json::Map<_, _>>().into()
}

fn a_turn(telemetry: &Telemetry) {
    let parent = SpanContext::parse(PARENT, Some("a=b"));
    let mut turn = telemetry.server_span("turn", parent.as_ref(), vec![("thread.id", "t".into())]);
    let mut call = telemetry.client_span("model_call", turn.context(), Vec::new());
    call.set("tokens", 7_u64);
    call.end(SpanStatus::Failed("status 500".into()));
    telemetry.log("codex.user_prompt", turn.context(), || vec![("prompt_length", 3_u64.into()), ("ok", true.into())]);
    turn.end(SpanStatus::Completed);
}

#[tokio::test]
async fn spans_and_log_events_are_posted_as_json_with_their_context() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(&collector, JSON);
    a_turn(&telemetry);
    telemetry.flush().await;
    let (mut logs, mut traces) = (None, None);
    for _ in 0..2 {
        let posted = collector.next().await;
        assert_eq!(posted.header("content-type"), Some("application/json"));
        match posted.path.as_str() {
            "/l?k=1" => {
                assert_eq!(posted.header("authorization"), Some("Bearer t"));
                logs = Some(posted.json());
            }
            "/t" => {
                assert_eq!(posted.header("authorization"), None);
                traces = Some(posted.json());
            }
            other => panic!("{other}"),
        }
    }
    let (logs, traces) = (logs.unwrap(), traces.unwrap());
    let resource = attributes(&traces["resourceSpans"][0]["resource"]);
    assert_eq!(resource, json!({ "service.name": "loomd", "service.version": "1.2.3", "env": "test" }));
    let spans = &traces["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let (call, turn) = (&spans[0], &spans[1]);
    assert_eq!((&call["name"], &turn["name"]), (&json!("model_call"), &json!("turn")));
    assert_eq!(turn["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((&turn["parentSpanId"], &turn["traceState"]), (&json!("b7ad6b7169203331"), &json!("a=b")));
    assert_eq!((&call["traceId"], &call["parentSpanId"]), (&turn["traceId"], &turn["spanId"]));
    assert_eq!((&turn["kind"], &call["kind"]), (&json!(2), &json!(3)));
    assert_eq!(
        (&turn["status"], &call["status"]),
        (&json!({ "code": 1 }), &json!({ "message": "status 500", "code": 2 }))
    );
    assert_eq!(attributes(turn), json!({ "thread.id": "t", "outcome": "completed" }));
    assert_eq!(attributes(call), json!({ "tokens": "7", "outcome": "failed" }));
    let time = |name: &str| turn[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(0 < time("startTimeUnixNano") && time("startTimeUnixNano") <= time("endTimeUnixNano"));
    assert!(attributes(&logs["resourceLogs"][0]["resource"])["host.name"].is_string());
    let log = &logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!((&log["eventName"], &log["spanId"]), (&json!("codex.user_prompt"), &turn["spanId"]));
    let fields = attributes(log);
    assert_eq!((&fields["event.name"], &fields["prompt_length"]), (&json!("codex.user_prompt"), &json!("3")));
    assert_eq!(fields["ok"], true);
    let timestamp = fields["event.timestamp"].as_str().unwrap();
    assert!(timestamp.len() == 24 && timestamp.ends_with('Z'), "{timestamp}");
}

#[tokio::test]
async fn the_binary_encoding_says_the_same() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(
        &collector,
        "otel.trace_exporter.otlp-http = { endpoint = 'URL', protocol = 'binary' }
        otel.exporter = 'none'",
    );
    a_turn(&telemetry);
    telemetry.flush().await;
    let posted = collector.next().await;
    assert_eq!(posted.header("content-type"), Some("application/x-protobuf"));
    let of_resource = Message::parse(&posted.body).message(1);
    let expected = [("service.name", "loomd"), ("service.version", "1.2.3"), ("env", "dev")];
    assert_eq!(of_resource.message(1).attributes(1), expected.map(|(name, value)| (name.into(), value.into())));
    let spans = of_resource.message(2).messages(2);
    let [call, turn] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((call.text(5), turn.text(5), turn.text(3)), ("model_call".into(), "turn".into(), "a=b".into()));
    assert_eq!(turn.bytes(1), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
    assert_eq!(turn.bytes(4), 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!((call.bytes(1), call.bytes(4)), (turn.bytes(1), turn.bytes(2)));
    assert_eq!((turn.number(6), call.number(6)), (2, 3));
    assert!(turn.number(7) <= turn.number(8));
    let expected = [("tokens", "7"), ("outcome", "failed")];
    assert_eq!(call.attributes(9), expected.map(|(name, value)| (name.into(), value.into())));
    assert_eq!((call.message(15).text(2), call.message(15).number(3)), ("status 500".into(), 2));
    assert!(collector.try_next().is_none(), "log events are not exported");
}

#[tokio::test]
async fn metrics_are_exported_at_a_flush_with_their_kind() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(&collector, JSON);
    let point = |value| vec![Point { attributes: vec![("kind", "input".into())], value }];
    telemetry.start_metrics(move || {
        let histogram = Histogram { bounds: &[0.1, 1.0], counts: vec![2, 0, 1], sum: 7.5 };
        vec![
            Metric { name: "a", description: "As.", kind: MetricKind::Gauge(point(0.0)) },
            Metric { name: "b_total", description: "Bs.", kind: MetricKind::Counter(point(2.5)) },
            Metric {
                name: "c",
                description: "Cs.",
                kind: MetricKind::Histogram(vec![Point { attributes: Vec::new(), value: histogram }]),
            },
        ]
    });
    telemetry.flush().await;
    let posted = collector.next().await;
    assert_eq!(posted.path, "/m");
    let metrics = &posted.json()["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!((&metrics[0]["name"], &metrics[0]["description"]), (&json!("a"), &json!("As.")));
    let gauge = &metrics[0]["gauge"]["dataPoints"][0];
    assert_eq!((&gauge["asDouble"], attributes(gauge)), (&json!(0), json!({ "kind": "input" })));
    let sum = &metrics[1]["sum"];
    assert_eq!((&sum["isMonotonic"], &sum["aggregationTemporality"]), (&json!(true), &json!(2)));
    assert_eq!(sum["dataPoints"][0]["asDouble"], 2.5);
    let histogram = &metrics[2]["histogram"]["dataPoints"][0];
    assert_eq!((&histogram["count"], &histogram["sum"]), (&json!("3"), &json!(7.5)));
    assert_eq!(histogram["bucketCounts"], json!(["2", "0", "1"]));
    assert_eq!(histogram["explicitBounds"], json!([0.1, 1]));
}

#[tokio::test]
async fn spans_that_a_client_does_not_sample_are_not_exported() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(&collector, JSON);
    let parent = SpanContext::parse(&PARENT.replace("-01", "-00"), None);
    let span = telemetry.server_span("turn", parent.as_ref(), Vec::new());
    assert!(span.context().unwrap().traceparent().ends_with("-00"));
    drop(span);
    drop(telemetry.server_span("seen", None, Vec::new()));
    telemetry.flush().await;
    let spans = &collector.next().await.json()["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!((spans[0]["name"].as_str(), spans[1].is_null()), (Some("seen"), true));
    assert_eq!(attributes(&spans[0])["outcome"], "cancelled");
}

#[tokio::test]
async fn records_wait_for_a_batch_and_are_sent_without_a_flush() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(&collector, JSON);
    for _ in 0..3 {
        drop(telemetry.server_span("turn", None, Vec::new()));
    }
    let spans = collector.next().await.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
    assert_eq!(spans.as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn a_batch_is_sent_again_after_a_temporary_failure_and_not_after_a_refusal() {
    let mut collector = Collector::start().await;
    let telemetry = telemetry(&collector, JSON);
    collector.answer(503);
    collector.answer(200);
    collector.answer(400);
    drop(telemetry.server_span("first", None, Vec::new()));
    let name = |posted: Posted| {
        posted.json()["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!([name(collector.next().await), name(collector.next().await)], ["first", "first"]);
    drop(telemetry.server_span("second", None, Vec::new()));
    assert_eq!(name(collector.next().await), "second");
    drop(telemetry.server_span("third", None, Vec::new()));
    telemetry.flush().await;
    assert_eq!(name(collector.next().await), "third");
    assert_eq!(telemetry.backlog(), (1, 0));
}

#[tokio::test]
async fn an_unreachable_collector_delays_nothing_and_its_queue_is_bounded() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Connections are accepted by the system and never answered.
    let otel = format!("otel.trace_exporter.otlp-http = {{ endpoint = '{url}', protocol = 'json' }}");
    let telemetry = Telemetry::start(crate::started::settings(&otel, &|_| None).unwrap());
    for _ in 0..20_000 {
        drop(telemetry.server_span("turn", None, Vec::new()));
    }
    let (dropped, queued) = telemetry.backlog();
    assert!(queued <= 4096, "{queued}");
    assert_eq!(dropped + queued as u64, 20_000);
    let long = "x".repeat(16 * 1024);
    for _ in 0..1000 {
        drop(telemetry.server_span("turn", None, vec![("text", long.clone().into())]));
    }
    let (dropped, queued) = telemetry.backlog();
    assert_eq!(dropped + queued as u64, 21_000);
    drop(listener);
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_although_the_collector_does_not_answer() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let otel = format!("otel.trace_exporter.otlp-http = {{ endpoint = '{url}', protocol = 'json' }}");
    let telemetry = Telemetry::start(crate::started::settings(&otel, &|_| None).unwrap());
    drop(telemetry.server_span("turn", None, Vec::new()));
    let begun = tokio::time::Instant::now();
    telemetry.flush().await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(listener);
}

#[tokio::test]
async fn without_exporters_nothing_is_recorded() {
    let telemetry = Telemetry::start(crate::started::settings("", &|_| None).unwrap());
    assert!(!telemetry.is_on() && !telemetry.logs());
    let mut span = telemetry.server_span("turn", None, Vec::new());
    assert_eq!(span.context(), None);
    span.end(SpanStatus::Completed);
    telemetry.log("event", None, || panic!("attributes are not made"));
    telemetry.start_metrics(|| panic!("metrics are not read"));
    telemetry.flush().await;
}

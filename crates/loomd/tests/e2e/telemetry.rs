//! `[otel]`: what a collector gets of a turn.

use std::collections::BTreeMap;

use loomd_testkit::model::{Usage, completed, function_call, message};
use loomd_testkit::{Collector, Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::common::{initialized, launch, run};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PROMPT: &str = "the words of the user";

fn otel(url: &str, more: &str) -> String {
    let exporter = |path: &str| format!("{{ otlp-http = {{ endpoint = '{url}/{path}', protocol = 'json' }} }}");
    let [logs, traces, metrics] = ["logs", "traces", "metrics"].map(exporter);
    format!("otel.exporter = {logs}\notel.trace_exporter = {traces}\notel.metrics_exporter = {metrics}\n{more}")
}

async fn scripted() -> ScriptedModel {
    let model = ScriptedModel::start().await;
    let used = || completed(Usage { input: 1000, cached: 100, output: 50, reasoning: 5 });
    let command = json!({ "command": ["sh", "-c", "touch made; echo the output"] });
    model.reply(function_call("shell", command, "c1").then(used())).reply(message("done").then(used()));
    model
}

/// Runs a turn with an approved command, in a trace of the client.
async fn run_turn(server: &Server, home: &Home) -> String {
    let params = json!({ "cwd": home.work(), "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
    let started = server.request("thread/start", params).await.unwrap();
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    let trace = json!({ "traceparent": format!("00-{TRACE}-b7ad6b7169203331-01"), "tracestate": "a=b" });
    let params = json!({ "threadId": thread, "input": [{ "type": "text", "text": PROMPT }] });
    server.send(&json!({ "id": "go", "method": "turn/start", "params": params, "trace": trace })).await;
    let (id, _) = server.server_request("item/commandExecution/requestApproval").await;
    server.respond(&id, json!({ "decision": "accept" })).await;
    let turn = server.turn_completed(&thread).await;
    assert_eq!(turn.error, None);
    thread
}

/// Everything that was exported, by path: the messages, and the text of all bodies.
#[derive(Default)]
struct Exported {
    spans: Vec<Value>,
    logs: Vec<Value>,
    metrics: Vec<Value>,
    text: String,
}

impl Exported {
    fn of(collector: &mut Collector) -> Self {
        let mut all = Self::default();
        while let Some(posted) = collector.try_next() {
            all.text += &String::from_utf8_lossy(&posted.body);
            let body = posted.json();
            let (list, messages) = match posted.path.as_str() {
                "/traces" => (&mut all.spans, &body["resourceSpans"][0]["scopeSpans"][0]["spans"]),
                "/logs" => (&mut all.logs, &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]),
                "/metrics" => (&mut all.metrics, &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]),
                other => panic!("{other}"),
            };
            list.extend(messages.as_array().unwrap().iter().cloned());
        }
        all
    }

    fn spans(&self, name: &str) -> Vec<&Value> {
        self.spans.iter().filter(|span| span["name"] == name).collect()
    }

    fn logs(&self, name: &str) -> Vec<BTreeMap<String, Value>> {
        self.logs.iter().filter(|log| log["eventName"] == name).map(attributes).collect()
    }
}

fn attributes(message: &Value) -> BTreeMap<String, Value> {
    let pairs = message["attributes"].as_array().unwrap().iter();
    let value = |pair: &Value| pair["value"].as_object().unwrap().values().next().unwrap().clone();
    pairs.map(|pair| (pair["key"].as_str().unwrap().to_owned(), value(pair))).collect()
}

async fn end(mut server: Server) {
    server.close_stdin().await;
    assert!(server.wait_exit().await.success());
}

#[tokio::test]
async fn a_turn_is_exported_as_spans_in_the_clients_trace_and_as_log_events() {
    let (model, mut collector) = (scripted().await, Collector::start().await);
    let home = Home::new(&model).with(&otel(&collector.url, "otel.environment = 'e2e'"));
    let server = initialized(&home).await;
    let thread = run_turn(&server, &home).await;
    end(server).await;
    let exported = Exported::of(&mut collector);
    let [turn] = exported.spans("turn")[..] else { panic!("{:?}", exported.spans) };
    let [tool] = exported.spans("tool_call")[..] else { panic!("{:?}", exported.spans) };
    let [approval] = exported.spans("approval")[..] else { panic!("{:?}", exported.spans) };
    let calls = exported.spans("model_call");
    assert_eq!(calls.len(), 2);
    for (span, parent) in [(turn, &json!("b7ad6b7169203331")), (tool, &turn["spanId"]), (approval, &tool["spanId"])]
        .into_iter()
        .chain(calls.iter().map(|call| (*call, &turn["spanId"])))
    {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), parent), "{span}");
        assert_eq!(attributes(span)["thread.id"], json!(thread));
        assert_eq!(attributes(span)["outcome"], "completed");
    }
    assert_eq!(attributes(tool)["gen_ai.tool.name"], "shell");
    assert_eq!(attributes(approval)["decision"], "approved");
    assert_eq!(attributes(calls[0])["gen_ai.usage.input_tokens"], "1000");
    for (call, request) in calls.iter().zip(model.calls()) {
        let span = call["spanId"].as_str().unwrap();
        assert_eq!(request.header("traceparent"), Some(format!("00-{TRACE}-{span}-01").as_str()));
        assert_eq!(request.header("tracestate"), Some("a=b"));
    }
    let names: Vec<_> = exported.logs.iter().map(|log| log["eventName"].as_str().unwrap()).collect();
    let expected = [
        "codex.conversation_starts",
        "codex.user_prompt",
        "codex.api_request",
        "codex.sse_event",
        "codex.tool_decision",
        "codex.tool_result",
        "codex.api_request",
        "codex.sse_event",
    ];
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(sorted(names), sorted(expected.into()));
    let prompt = &exported.logs("codex.user_prompt")[0];
    assert_eq!((&prompt["prompt"], &prompt["prompt_length"]), (&json!("[REDACTED]"), &json!("21")));
    assert_eq!((&prompt["conversation.id"], &prompt["model"]), (&json!(thread), &json!("scripted-model")));
    let result = &exported.logs("codex.tool_result")[0];
    assert_eq!((&result["tool_name"], &result["success"]), (&json!("shell"), &json!("true")));
    assert_eq!(exported.logs("codex.sse_event")[0]["output_token_count"], "50");
    for secret in [PROMPT, "the output", "done"] {
        assert!(!exported.text.contains(secret), "{secret}");
    }
    let turns = exported.metrics.iter().rfind(|metric| metric["name"] == "loomd_turns_total").unwrap();
    let points = turns["sum"]["dataPoints"].as_array().unwrap();
    let completed = points.iter().find(|point| attributes(point)["outcome"] == "completed").unwrap();
    assert_eq!(completed["asDouble"], 1);
    assert!(exported.text.contains("e2e"));
}

#[tokio::test]
async fn texts_are_exported_only_with_log_user_prompt() {
    let (model, mut collector) = (scripted().await, Collector::start().await);
    let home = Home::new(&model).with(&otel(&collector.url, "otel.log_user_prompt = true"));
    let server = initialized(&home).await;
    run_turn(&server, &home).await;
    end(server).await;
    let exported = Exported::of(&mut collector);
    assert_eq!(exported.logs("codex.user_prompt")[0]["prompt"], PROMPT);
    let result = &exported.logs("codex.tool_result")[0];
    assert!(result["output"].as_str().unwrap().contains("the output"), "{result:?}");
    assert!(result["arguments"].as_str().unwrap().contains("touch made"), "{result:?}");
    for span in &exported.spans {
        assert!(!span.to_string().contains(PROMPT) && !span.to_string().contains("the output"), "{span}");
    }
}

#[tokio::test]
async fn without_exporters_model_calls_have_no_trace() {
    let model = scripted().await;
    let home = Home::new(&model).with("otel.exporter = 'none'\notel.metrics_exporter = 'statsig'");
    let server = initialized(&home).await;
    run_turn(&server, &home).await;
    end(server).await;
    for call in model.calls() {
        assert_eq!((call.header("traceparent"), call.header("tracestate")), (None, None));
    }
}

#[tokio::test]
async fn an_unreachable_collector_is_logged_once_and_does_not_fail_a_turn() {
    let model = scripted().await;
    // Nothing listens on port 1.
    let home = Home::new(&model).with(&otel("http://127.0.0.1:1", ""));
    let mut server = launch().env("RUST_LOG", "error").stdio(&home);
    server.initialize().await;
    run_turn(&server, &home).await;
    server.close_stdin().await;
    assert!(server.wait_exit().await.success());
    let logged = server.stderr().to_end().await;
    let lines: Vec<_> = logged.lines().filter(|line| line.contains("telemetry cannot be exported")).collect();
    // One for each exporter.
    assert_eq!(lines.len(), 3, "{logged}");
}

#[tokio::test]
async fn exporters_that_cannot_work_keep_the_server_from_starting_and_grpc_is_warned_about() {
    let home = Home::empty().with("otel.exporter.otlp-http = { endpoint = 'not a uri', protocol = 'json' }");
    let ended = run(&home, &["app-server"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expected = "error: error loading otel config: invalid value for `otel.exporter`: invalid endpoint `not a uri`";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
    let home = Home::empty().with("otel.trace_exporter.otlp-grpc = { endpoint = 'http://127.0.0.1:4317' }");
    let server = initialized(&home).await;
    let warning = server.notification("configWarning").await;
    let summary = warning["summary"].as_str().unwrap();
    assert!(summary.starts_with("`otel.trace_exporter`: `otlp-grpc` is not supported"), "{summary}");
}

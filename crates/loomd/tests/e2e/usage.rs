//! What was used and spent: budgets of requests, `account/usage/read`, `loomd usage` and `/metrics`.

use loomd_testkit::model::{Usage, completed, message};
use loomd_testkit::{Home, ScriptedModel, Signal};
use serde_json::{Value, json};

use crate::common::{initialized, launch, run};

const PRICES: &str = "[loomd.prices.scripted-model]\ninput = 1.0\noutput = 10.0";

async fn model(replies: usize) -> ScriptedModel {
    let model = ScriptedModel::start().await;
    for _ in 0..replies {
        let usage = Usage { input: 1000, cached: 100, output: 50, reasoning: 5 };
        model.reply(message("done").then(completed(usage)));
    }
    model
}

#[tokio::test]
async fn the_usage_of_turns_is_read_by_clients_and_at_the_terminal() {
    let model = model(3).await;
    let home = Home::new(&model).with(PRICES);
    let mut server = initialized(&home).await;
    let first = server.start_thread(Default::default()).await.id;
    server.run_turn(&first, "one").await;
    server.run_turn(&first, "two").await;
    let second = server.start_thread(Default::default()).await.id;
    server.run_turn(&second, "three").await;
    let read = server.request("account/usage/read", json!({ "threadId": first })).await.unwrap();
    assert_eq!(read["summary"]["lifetimeTokens"], 3150);
    assert_eq!(read["dailyUsageBuckets"].as_array().unwrap().iter().map(tokens).sum::<i64>(), 3150);
    assert_eq!(read["threadUsage"]["threadId"], json!(first));
    assert_eq!(read["threadUsage"]["estimatedUsageUsdMicros"], 3000);
    let group = &read["threadUsage"]["groups"][0];
    assert_eq!(group["model"], "scripted/scripted-model");
    assert_eq!((&group["inputTokens"], &group["netNewInputTokens"]), (&json!(2000), &json!(1800)));
    assert_eq!((&group["outputTokens"], &group["totalTokens"]), (&json!(100), &json!(2100)));
    let wrong = server.request("account/usage/read", json!({ "threadId": "no id" })).await.unwrap_err();
    assert_eq!(wrong.code, -32600, "{wrong:?}");
    // Everything is in the file before the server ends.
    server.close_stdin().await;
    assert!(server.wait_exit().await.success());
    // A run that passes midnight in UTC finds what it looks for with `--since`.
    let usage = async |args: &[&str]| {
        let ran = run(&home, &[&["usage", "--since", "2020-01-01"], args].concat()).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    let found: Value = serde_json::from_str(&usage(&["--by", "thread", "--json"]).await).unwrap();
    assert_eq!(found["total"]["calls"], 3);
    assert_eq!(found["total"]["dollars"], 0.0045);
    let mut threads: Vec<_> =
        found["groups"].as_array().unwrap().iter().map(|group| (&group["thread"], &group["totalTokens"])).collect();
    threads.sort_by_key(|(thread, _)| thread.as_str());
    assert_eq!(threads, [(&json!(first), &json!(2100)), (&json!(second), &json!(1050))]);
    let csv = usage(&["--csv"]).await;
    assert_eq!(csv.lines().nth(1), Some("scripted/scripted-model,3,3000,300,0,150,15,3150,0.0045,0"), "{csv}");
    let table = usage(&[]).await;
    assert!(table.contains("scripted/scripted-model      3   3000     300     150  $0.0045\n"), "{table}");
    for wrong in [["--since", "yesterday"], ["--by", "mood"]] {
        assert_eq!(run(&home, &[&["usage"], wrong.as_slice()].concat()).await.code, Some(2), "{wrong:?}");
    }
}

fn tokens(bucket: &Value) -> i64 {
    bucket["tokens"].as_i64().unwrap()
}

#[tokio::test]
async fn the_budget_of_a_thread_outlives_the_server() {
    let model = model(2).await;
    let home = Home::new(&model);
    let mut server = initialized(&home).await;
    let start = json!({ "budget": { "modelCalls": 1 } });
    let thread = server.request("thread/start", start).await.unwrap()["thread"]["id"].as_str().unwrap().to_owned();
    server.run_turn(&thread, "one").await;
    server.close_stdin().await;
    server.wait_exit().await;
    let server = initialized(&home).await;
    server.request("thread/resume", json!({ "threadId": thread })).await.unwrap();
    let turn = server.run_turn(&thread, "two").await;
    let error = turn.error.expect("an error");
    assert_eq!(error.message, "budget exceeded: this thread has spent 1 of 1 model calls");
    assert_eq!(model.unused(), 1);
    for (wrong, field) in [(json!({ "tokens": -1 }), "tokens"), (json!({ "dollars": -0.5 }), "dollars")] {
        let refused = server.request("thread/start", json!({ "budget": wrong })).await.unwrap_err();
        assert_eq!(refused.code, -32600, "{field}: {refused:?}");
    }
}

#[tokio::test]
async fn a_killed_server_leaves_a_ledger_that_the_next_one_adds_to() {
    let model = model(2).await;
    let home = Home::new(&model);
    for _ in 0..2 {
        let mut server = initialized(&home).await;
        let thread = server.start_thread(Default::default()).await.id;
        server.run_turn(&thread, "one").await;
        // Answered from the file.
        server.request("account/usage/read", json!({})).await.unwrap();
        server.signal(Signal::KILL);
        server.wait_exit().await;
        let folder = home.path().join("loomd/ledger");
        let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        std::fs::OpenOptions::new()
            .append(true)
            .open(file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"{\"type\":\"call\",\"atMs\":1"))
            .unwrap();
    }
    let server = initialized(&home).await;
    let read = server.request("account/usage/read", json!({})).await.unwrap();
    assert_eq!(read["summary"]["lifetimeTokens"], 2100);
}

#[tokio::test]
async fn metrics_are_answered_on_loopback_to_clients_that_may_connect() {
    let model = model(1).await;
    let home = Home::new(&model);
    let server = launch().websocket(&home).await;
    let client = server.connect().await;
    client.initialize().await;
    let thread = client.start_thread(Default::default()).await.id;
    client.run_turn(&thread, "one").await;
    client.request("thread/read", json!({ "threadId": "no id" })).await.unwrap_err();
    let reply = server.http("GET", "/metrics", &[]).await;
    assert_eq!(reply.status, 200);
    let text = reply.text();
    for line in [
        "# TYPE loomd_tokens_total counter",
        "loomd_tokens_total{kind=\"input\"} 1000",
        "loomd_tokens_total{kind=\"reasoning_output\"} 5",
        "loomd_model_calls_total{purpose=\"turn\",outcome=\"completed\"} 1",
        "loomd_turns_total{outcome=\"completed\"} 1",
        "loomd_connections 1",
        "loomd_requests_total{method=\"turn/start\",outcome=\"ok\"} 1",
        "loomd_requests_total{method=\"thread/read\",outcome=\"error\"} 1",
        "loomd_ledger_lost_total 0",
        "loomd_inbox_inputs 0",
        "loomd_thread_queue_requests 0",
        "loomd_mcp_servers_running 0",
        "# TYPE loomd_programs_running gauge",
        "# TYPE loomd_outbound_queue_bytes gauge",
        "# TYPE loomd_event_log_bytes gauge",
        "# TYPE loomd_store_append_seconds histogram",
        "loomd_store_append_seconds_count{operation=\"sync\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert_eq!(server.http("GET", "/metrics", &[("Origin", "http://127.0.0.1")]).await.status, 403);
    assert_eq!(server.http("POST", "/metrics", &[]).await.status, 405);
}

#[tokio::test]
async fn metrics_need_the_token_of_the_listener_and_can_be_turned_off() {
    let home = Home::empty();
    let token = home.write("token", "let-me-in");
    let guarded = || launch().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([token.clone()]);
    let server = guarded().websocket(&home).await;
    let bearer = ("Authorization", "Bearer let-me-in");
    assert_eq!(server.http("GET", "/metrics", &[]).await.status, 401);
    assert_eq!(server.http("GET", "/metrics", &[bearer]).await.status, 200);
    drop(server);
    let server = guarded().args(["-c", "loomd.metrics=false"]).websocket(&home).await;
    // Like every other path: for websockets only.
    assert_eq!(server.http("GET", "/metrics", &[bearer]).await.status, 400);
}

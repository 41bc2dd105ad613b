//! Two servers share a thread in one home: one at a time runs a turn, and each reads what the other stored.

use loomd_testkit::model::message;
use loomd_testkit::{Gate, Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::audit::settled;
use crate::common::initialized;

/// How many turns the servers run alternately.
const ROUNDS: usize = 200;

#[tokio::test]
async fn alternating_servers_append_to_one_history() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let servers = [initialized(&home).await, initialized(&home).await];
    let thread = servers[0].start_thread(Default::default()).await.id;
    for round in 0..ROUNDS {
        model.reply(message(&format!("answer {round}")));
        let server = &servers[round % 2];
        if round == 1 {
            server.request("thread/resume", json!({ "threadId": thread })).await.expect("a stored thread resumes");
        }
        let turn = server.run_turn(&thread, &format!("question {round}")).await;
        assert_eq!(json!(turn)["status"], "completed", "round {round}: {turn:?}");
    }

    let expected: Vec<_> = (0..ROUNDS).map(|round| [format!("question {round}"), format!("answer {round}")]).collect();
    let first = turns(&servers[0], &thread).await;
    assert_eq!(first.iter().map(texts).collect::<Vec<_>>(), expected);
    let mut ids: Vec<_> = first.iter().map(|turn| turn["id"].to_string()).collect();
    ids.dedup();
    assert_eq!(ids.len(), ROUNDS, "every turn is there once");
    assert_eq!(turns(&servers[1], &thread).await, first, "both see the same");

    // The model gets the same history from both.
    for (number, call) in model.calls().iter().enumerate().skip(ROUNDS - 2) {
        let said = call.user_texts().into_iter().filter(|text| text.starts_with("question")).collect::<Vec<_>>();
        let expected: Vec<_> = (0..=number).map(|round| format!("question {round}")).collect();
        assert_eq!(said, expected);
    }
    for server in &servers {
        assert_eq!(settled(server).await, [] as [String; 0]);
    }
}

#[tokio::test]
async fn a_thread_with_a_turn_in_another_process_accepts_no_input() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let (ours, theirs) = (initialized(&home).await, initialized(&home).await);
    model.reply(message("first"));
    let thread = ours.start_thread(Default::default()).await.id;
    ours.run_turn(&thread, "begin").await;
    theirs.request("thread/resume", json!({ "threadId": thread })).await.expect("it resumes");

    let gate = Gate::new();
    model.reply(message("second").after(&gate));
    ours.start_turn(&thread, "go on").await;
    model.call(1).await;
    let say = || json!({ "threadId": thread, "input": [{ "type": "text", "text": "me too" }], "model": "another" });
    for _ in 0..3 {
        let refused = theirs.request("turn/start", say()).await.expect_err("one turn at a time");
        let holder = format!("thread {thread} is in use by process {}", ours.pid());
        assert_eq!((refused.code, refused.message), (-32600, holder));
    }
    for (method, params) in [
        ("thread/rollback", json!({ "threadId": thread, "numTurns": 1 })),
        ("thread/compact/start", json!({ "threadId": thread })),
    ] {
        let refused = theirs.request(method, params).await.expect_err("its history is being written");
        assert_eq!(refused.code, -32600, "{method}");
    }
    assert_eq!(turns(&theirs, &thread).await.len(), 2, "reading always works");
    gate.open();
    ours.turn_completed(&thread).await;

    model.reply(message("third"));
    assert_eq!(json!(theirs.run_turn(&thread, "my turn").await)["status"], "completed");
    let call = model.call(2).await;
    assert_eq!(call.body["model"], "scripted-model", "what a refused turn asked for does not count");
    assert_eq!(call.user_texts().iter().rev().take(3).collect::<Vec<_>>(), [&"my turn", &"go on", &"begin"]);
    assert_eq!(turns(&ours, &thread).await.len(), 3);
    for server in [&ours, &theirs] {
        assert_eq!(settled(server).await, [] as [String; 0]);
    }
}

async fn turns(server: &Server, thread: &str) -> Vec<Value> {
    let read = server.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await;
    let mut read = read.expect("a thread can be read");
    serde_json::from_value(read["thread"]["turns"].take()).expect("turns")
}

fn texts(turn: &Value) -> [String; 2] {
    let text = |item: &Value, path: &str| item.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(turn["status"], "completed", "{turn}");
    [text(&turn["items"][0], "/content/0/text"), text(&turn["items"][1], "/text")]
}

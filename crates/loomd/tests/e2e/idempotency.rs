//! Requests that are sent again are carried out once, also by the next process.

use loomd_protocol::{InitializeCapabilities, RpcError};
use loomd_testkit::model::message;
use loomd_testkit::{Home, Peer, ScriptedModel, Server, Signal};
use serde_json::{Value, json};

use crate::common::launch;

async fn launched(home: &Home) -> Server {
    let server = launch().stdio(home);
    server.initialize_with(InitializeCapabilities { event_ids: true, ..Default::default() }).await;
    server
}

async fn killed(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait_exit().await;
}

fn said(thread: &str, text: &str, key: &str) -> Value {
    json!({ "threadId": thread, "input": [{ "type": "text", "text": text }], "clientUserMessageId": key })
}

async fn start(server: &Peer, home: &Home) -> String {
    let started = server.request("thread/start", json!({ "cwd": home.work() })).await.expect("a thread");
    started["thread"]["id"].as_str().unwrap().to_owned()
}

fn assert_conflict(answer: Result<Value, RpcError>) {
    let error = answer.expect_err("another body");
    assert_eq!((error.code, &error.data), (-32600, &Some(json!({ "reason": "idempotencyConflict" }))), "{error}");
}

#[tokio::test]
async fn a_turn_that_is_started_again_is_the_same_turn_also_after_a_restart() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launched(&home).await;
    let thread = start(&server, &home).await;
    model.reply(message("one"));
    let first = server.request("turn/start", said(&thread, "hi", "k")).await.expect("a turn");
    assert_eq!(server.request("turn/start", said(&thread, "hi", "k")).await.expect("the same"), first);
    server.turn_completed(&thread).await;
    assert_eq!(server.request("turn/start", said(&thread, "hi", "k")).await.expect("the same"), first);
    assert_conflict(server.request("turn/start", said(&thread, "other", "k")).await);
    killed(server).await;
    let server = launched(&home).await;
    server.request("thread/resume", json!({ "threadId": thread })).await.expect("it is stored");
    assert_eq!(server.request("turn/start", said(&thread, "hi", "k")).await.expect("the same"), first);
    assert_conflict(server.request("turn/start", said(&thread, "other", "k")).await);
    model.reply(message("two"));
    server.request("turn/start", said(&thread, "hi", "another")).await.expect("another turn");
    server.turn_completed(&thread).await;
    assert_eq!(model.calls().len(), 2);
    let read = server.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await.unwrap();
    assert_eq!(read["thread"]["turns"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_client_that_did_not_ask_for_event_ids_may_use_the_id_of_a_message_twice() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launch().stdio(&home);
    server.initialize().await;
    let thread = start(&server, &home).await;
    let mut turns = Vec::new();
    for text in ["one", "two"] {
        model.reply(message(text));
        let turn = server.request("turn/start", said(&thread, "hi", "k")).await.expect("a turn");
        turns.push(turn["turn"]["id"].clone());
        server.turn_completed(&thread).await;
    }
    assert_ne!(turns[0], turns[1]);
}

#[tokio::test]
async fn steering_twice_with_one_id_adds_the_message_once() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launched(&home).await;
    let thread = start(&server, &home).await;
    let gate = loomd_testkit::Gate::new();
    model.reply(message("one").after(&gate)).reply(message("two"));
    let turn = server.request("turn/start", said(&thread, "hi", "first")).await.expect("a turn");
    let mut steer = said(&thread, "more", "second");
    steer["expectedTurnId"] = turn["turn"]["id"].clone();
    let steered = server.request("turn/steer", steer.clone()).await.expect("it runs");
    assert_eq!(server.request("turn/steer", steer.clone()).await.expect("the same"), steered);
    steer["input"][0]["text"] = json!("other");
    assert_conflict(server.request("turn/steer", steer).await);
    gate.open();
    server.turn_completed(&thread).await;
    let items = server.completed_items(&thread);
    assert_eq!(items.iter().filter(|item| matches!(item, loomd_protocol::ThreadItem::UserMessage { .. })).count(), 2);
}

#[tokio::test]
async fn a_thread_that_is_started_again_is_the_same_thread_and_is_subscribed_to() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launched(&home).await;
    let params = |model: &str| json!({ "cwd": home.work(), "model": model, "idempotencyKey": "mine" });
    let id = |answer: Value| answer["thread"]["id"].as_str().unwrap().to_owned();
    let thread = id(server.request("thread/start", params("m")).await.expect("a thread"));
    assert_eq!(id(server.request("thread/start", params("m")).await.expect("the same")), thread);
    assert_conflict(server.request("thread/start", params("n")).await);
    killed(server).await;
    // Nothing of it was stored: it is started again, as the same thread.
    let server = launched(&home).await;
    assert_eq!(id(server.request("thread/start", params("m")).await.expect("the same")), thread);
    model.reply(message("one"));
    server.run_turn(&thread, "hi").await;
    killed(server).await;
    let server = launched(&home).await;
    assert_eq!(id(server.request("thread/start", params("m")).await.expect("the same")), thread);
    model.reply(message("two"));
    server.run_turn(&thread, "hi").await;
    let listed = server.request("thread/list", json!({})).await.unwrap();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let error = server.request("thread/start", json!({ "idempotencyKey": "" })).await.expect_err("no key");
    assert_eq!(error.message, "idempotencyKey must not be empty");
}

#[tokio::test]
async fn forks_compactions_reviews_and_commands_are_carried_out_once_for_each_key() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launched(&home).await;
    let thread = start(&server, &home).await;
    model.reply(message("one"));
    server.run_turn(&thread, "hi").await;
    let with = |mut params: Value| {
        params["threadId"] = json!(thread);
        params["idempotencyKey"] = json!("k");
        params
    };

    let fork = server.request("thread/fork", with(json!({}))).await.expect("a fork");
    let again = server.request("thread/fork", with(json!({}))).await.expect("the same");
    assert_eq!(again["thread"]["id"], fork["thread"]["id"]);
    assert_eq!(again["thread"]["turns"][0]["items"], fork["thread"]["turns"][0]["items"]);
    assert_conflict(server.request("thread/fork", with(json!({ "excludeTurns": true }))).await);

    let count = home.work().join("count");
    let command = json!({ "command": format!("echo ran >> {}", count.display()) });
    server.request("thread/shellCommand", with(command.clone())).await.expect("it runs");
    server.request("thread/shellCommand", with(command.clone())).await.expect("the same");
    server.turn_completed(&thread).await;
    server.request("thread/shellCommand", with(command.clone())).await.expect("the same");
    assert_conflict(server.request("thread/shellCommand", with(json!({ "command": "true" }))).await);

    model.reply(message("a summary"));
    server.request("thread/compact/start", with(json!({}))).await.expect("it starts");
    server.request("thread/compact/start", with(json!({}))).await.expect("the same");
    server.turn_completed(&thread).await;

    let target = json!({ "target": { "type": "custom", "instructions": "look" } });
    model.reply(message("fine"));
    let review = server.request("review/start", with(target.clone())).await.expect("a review");
    assert_eq!(server.request("review/start", with(target.clone())).await.expect("the same"), review);
    server.turn_completed(&thread).await;
    let calls = model.calls().len();
    killed(server).await;

    let server = launched(&home).await;
    server.request("thread/resume", json!({ "threadId": thread })).await.expect("it is stored");
    let again = server.request("thread/fork", with(json!({}))).await.expect("the same");
    assert_eq!(again["thread"]["id"], fork["thread"]["id"]);
    server.request("thread/shellCommand", with(command)).await.expect("the same");
    server.request("thread/compact/start", with(json!({}))).await.expect("the same");
    assert_eq!(server.request("review/start", with(target)).await.expect("the same"), review);
    let detached = json!({ "target": { "type": "custom", "instructions": "look" }, "delivery": "detached" });
    let mut detached = with(detached);
    detached["idempotencyKey"] = json!("apart");
    model.reply(message("fine"));
    let review = server.request("review/start", detached.clone()).await.expect("a review");
    assert_eq!(server.request("review/start", detached).await.expect("the same"), review);
    server.turn_completed(review["reviewThreadId"].as_str().unwrap()).await;
    assert_eq!(std::fs::read_to_string(count).unwrap(), "ran\n");
    assert_eq!(model.calls().len(), calls + 1);
}

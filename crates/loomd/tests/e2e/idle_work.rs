//! Goals and queues over kills and between processes: a goal continues once, and a queued message becomes one turn.

use std::time::Duration;

use loomd_protocol::InitializeCapabilities;
use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Gate, Home, Peer, ScriptedModel, Server, Signal};
use serde_json::{Value, json};

use crate::common::launch;

/// How often the server is killed, and the messages that are queued before each kill.
const KILLS: usize = 12;
const MESSAGES: usize = 6;

/// A server for a client of the newer release.
async fn newer(home: &Home) -> Server {
    let server = launch().stdio(home);
    let protocol_version = Some("0.166.0".into());
    let capabilities = InitializeCapabilities { experimental_api: true, protocol_version, ..Default::default() };
    server.initialize_with(capabilities).await;
    server
}

async fn resume(server: &Peer, thread: &str) {
    server.request("thread/resume", json!({ "threadId": thread })).await.expect("the thread resumes");
}

async fn enqueue(server: &Peer, thread: &str, text: &str) -> bool {
    let input = json!([{ "type": "text", "text": text }]);
    let params = json!({ "threadId": thread, "input": input, "clientUserMessageId": text });
    server.request("thread/queue/add", params).await.is_ok()
}

async fn goal(server: &Peer, thread: &str) -> Value {
    let mut answer = server.request("thread/goal/get", json!({ "threadId": thread })).await.expect("a goal is read");
    answer["goal"].take()
}

/// The texts of the user's messages in the stored turns.
async fn stored_texts(server: &Peer, thread: &str) -> Vec<String> {
    let params = json!({ "threadId": thread, "includeTurns": true });
    let read = server.request("thread/read", params).await.expect("the thread is read");
    let turns = read["thread"]["turns"].as_array().expect("turns");
    let items = turns.iter().flat_map(|turn| turn["items"].as_array().into_iter().flatten());
    let texts = items.filter(|item| item["type"] == "userMessage").map(|item| &item["content"][0]["text"]);
    texts.filter_map(|text| text.as_str().map(Into::into)).collect()
}

/// Waits until the thread is idle and its queue empty.
async fn drained(server: &Peer, thread: &str) {
    loop {
        let queue = server.request("thread/queue/list", json!({ "threadId": thread })).await.expect("a page");
        let read = server.request("thread/read", json!({ "threadId": thread })).await.expect("the thread is read");
        if queue["data"] == json!([]) && read["thread"]["status"]["type"] == "idle" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_queued_message_is_lost_or_run_twice_by_sigkill() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let mut random = fastrand::Rng::with_seed(11);
    let mut accepted: Vec<String> = Vec::new();
    let thread = {
        let server = newer(&home).await;
        let thread = server.start_thread(Default::default()).await.id;
        server.run_turn(&thread, "begin").await;
        thread
    };
    for kill in 0..KILLS {
        let mut server = newer(&home).await;
        resume(&server, &thread).await;
        let last = server.messages().len() + random.usize(1..40);
        let feed = async {
            for number in 0..MESSAGES {
                let text = format!("message {kill}-{number}");
                if enqueue(&server, &thread, &text).await {
                    accepted.push(text);
                }
            }
            std::future::pending().await
        };
        let enough = async {
            while server.messages().len() < last {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = feed => {}
            () = enough => {}
        }
        server.signal(Signal::KILL);
        server.wait_exit().await;
    }
    let server = newer(&home).await;
    resume(&server, &thread).await;
    drained(&server, &thread).await;
    let stored = stored_texts(&server, &thread).await;
    let mut once = stored.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), stored.len(), "every message became one turn: {stored:?}");
    let lost: Vec<_> = accepted.iter().filter(|text| !stored.contains(text)).collect();
    assert_eq!(lost, [] as [&String; 0], "of {} messages", accepted.len());
}

#[tokio::test]
async fn a_goal_continues_once_after_sigkill() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let mut server = newer(&home).await;
    let thread = server.start_thread(Default::default()).await.id;
    let gate = Gate::new();
    model.reply(message("never read").after(&gate));
    let params = json!({ "threadId": thread, "objective": "paint the fence" });
    server.request("thread/goal/set", params).await.expect("a goal is set");
    model.call(0).await;
    server.signal(Signal::KILL);
    server.wait_exit().await;

    model.forget_replies();
    model.reply(function_call("update_goal", json!({ "status": "complete" }), "done"));
    model.reply(message("finished"));
    let server = newer(&home).await;
    assert_eq!(goal(&server, &thread).await["status"], "active");
    resume(&server, &thread).await;
    server.turn_completed(&thread).await;
    assert_eq!(goal(&server, &thread).await["status"], "complete");
    // Further turns would have begun before this one, which the client starts.
    server.run_turn(&thread, "and now?").await;
    let goal_calls = model.calls().iter().filter(|call| asks_for(call, "paint the fence")).count();
    assert_eq!((model.calls().len(), goal_calls), (4, 2), "one call was killed, one continued");
}

/// Whether the last input of a model call is the prompt of a goal.
fn asks_for(call: &loomd_testkit::model::RecordedRequest, objective: &str) -> bool {
    let last = call.body["input"].as_array().and_then(|input| input.last());
    last.is_some_and(|item| item["role"] == "user" && item["content"][0]["text"].to_string().contains(objective))
}

#[tokio::test]
async fn of_two_servers_with_the_thread_loaded_one_works_on_its_goal() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let (ours, theirs) = (newer(&home).await, newer(&home).await);
    let thread = ours.start_thread(Default::default()).await.id;
    ours.run_turn(&thread, "begin").await;
    let gate = Gate::new();
    model.reply(message("at work").after(&gate));
    let params = json!({ "threadId": thread, "objective": "paint the fence" });
    ours.request("thread/goal/set", params).await.expect("a goal is set");
    model.call(1).await;
    // The lease is taken: resuming starts nothing, and what is queued waits for the turn of the other process.
    resume(&theirs, &thread).await;
    assert!(enqueue(&theirs, &thread, "first this").await);
    assert_eq!(model.calls().len(), 2);
    model.reply(message("done"));
    model.reply(function_call("update_goal", json!({ "status": "complete" }), "done"));
    gate.open();
    for _ in 0..3 {
        ours.turn_completed(&thread).await;
    }
    assert_eq!(goal(&theirs, &thread).await["status"], "complete");
    let texts: Vec<_> = stored_texts(&ours, &thread).await;
    assert_eq!(texts, ["begin", "first this"]);
    assert_eq!(theirs.notifications("turn/started"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_goal_that_was_interrupted_waits_also_after_a_restart() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let mut server = newer(&home).await;
    let thread = server.start_thread(Default::default()).await.id;
    let gate = Gate::new();
    model.reply(message("never").after(&gate));
    let params = json!({ "threadId": thread, "objective": "paint the fence" });
    server.request("thread/goal/set", params).await.expect("a goal is set");
    model.call(0).await;
    let turn = server.notification("turn/started").await;
    let params = json!({ "threadId": thread, "turnId": turn["turn"]["id"] });
    server.request("turn/interrupt", params).await.expect("it is interrupted");
    assert_eq!(goal(&server, &thread).await["stalled"], "interrupted");
    server.signal(Signal::KILL);
    server.wait_exit().await;

    let server = newer(&home).await;
    resume(&server, &thread).await;
    let stalled = goal(&server, &thread).await;
    assert_eq!((&stalled["status"], &stalled["stalled"]), (&json!("active"), &json!("interrupted")));
    // A turn of the user brings it back.
    model.forget_replies();
    model.reply(message("to the user"));
    model.reply(function_call("update_goal", json!({ "status": "complete" }), "done"));
    server.run_turn(&thread, "by hand").await;
    server.turn_completed(&thread).await;
    assert_eq!(goal(&server, &thread).await["status"], "complete");
    assert_eq!(model.calls()[1].user_texts().last(), Some(&"by hand"));
}

#[tokio::test]
async fn a_model_that_calls_no_tools_does_not_keep_a_goal_busy_for_ever() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("[goals]\nmax_idle_turns = 3");
    let server = newer(&home).await;
    let thread = server.start_thread(Default::default()).await.id;
    let params = json!({ "threadId": thread, "objective": "paint the fence" });
    server.request("thread/goal/set", params).await.expect("a goal is set");
    server.notification_where("thread/goal/updated", |params| params["goal"]["status"] == "blocked").await;
    for _ in 0..3 {
        server.turn_completed(&thread).await;
    }
    assert_eq!(model.calls().len(), 3);
}

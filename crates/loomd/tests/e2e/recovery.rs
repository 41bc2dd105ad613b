//! Turns that outlive their process: a server that listens takes up what a killed one left unfinished. Commands are not
//! run again; a file that they append to counts them.

use std::path::Path;
use std::time::Duration;

use loomd_protocol::InitializeCapabilities;
use loomd_testkit::model::{added, function_call, message, streamed, text_delta};
use loomd_testkit::{Gate, Home, Peer, ScriptedModel, Signal, WsConnection, WsServer};
use serde_json::{Value, json};

use crate::common::launch;

const APPROVAL: &str = "item/commandExecution/requestApproval";

fn home(model: &ScriptedModel) -> Home {
    Home::new(model).with("features.shell_snapshot = false\nsandbox_mode = \"danger-full-access\"\n")
}

async fn connect(server: &WsServer) -> WsConnection {
    let client = server.connect().await;
    let capabilities = InitializeCapabilities { experimental_api: true, event_ids: true, ..Default::default() };
    client.initialize_with(capabilities).await;
    client
}

/// A thread on a new server, whose commands run as this policy says.
async fn begin(home: &Home, policy: &str) -> (WsServer, WsConnection, String) {
    let server = launch().websocket(home).await;
    let client = connect(&server).await;
    let params = json!({ "cwd": home.work(), "approvalPolicy": policy });
    let started = client.request("thread/start", params).await.expect("a thread");
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    (server, client, thread)
}

async fn restarted(mut server: WsServer, home: &Home) -> (WsServer, WsConnection) {
    server.signal(Signal::KILL);
    server.wait_exit().await;
    let server = launch().websocket(home).await;
    let client = connect(&server).await;
    (server, client)
}

async fn until<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(loomd_testkit::TIMEOUT, waited).await.unwrap_or_else(|_| panic!("no {what}"))
}

async fn turns(client: &Peer, thread: &str) -> Vec<Value> {
    let read = client.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await;
    read.expect("it can be read")["thread"]["turns"].as_array().cloned().unwrap_or_default()
}

/// The turns of a thread once all of them have ended.
async fn ended(client: &Peer, thread: &str) -> Vec<Value> {
    until("end of the turns", async || {
        let turns = turns(client, thread).await;
        turns.iter().all(|turn| turn["status"] != "inProgress").then_some(turns)
    })
    .await
}

fn texts(turn: &Value, kind: &str) -> Vec<String> {
    let items = turn["items"].as_array().unwrap().iter().filter(|item| item["type"] == kind);
    items.map(|item| item["text"].as_str().or(item["content"][0]["text"].as_str()).unwrap_or_default().into()).collect()
}

/// A command that counts itself and then blocks until `go` exists.
fn counted(home: &Home) -> Value {
    let (count, go) = (home.work().join("count"), home.work().join("go"));
    let script =
        format!("echo ran >> {}; until test -e {}; do sleep 0.01; done; echo over", count.display(), go.display());
    json!({ "command": script, "login": false })
}

fn runs(home: &Home) -> usize {
    std::fs::read_to_string(home.work().join("count")).map_or(0, |text| text.lines().count())
}

async fn until_it_runs(home: &Home) {
    until("command", async || (runs(home) > 0).then_some(())).await;
}

fn unfinished(home: &Path) -> usize {
    std::fs::read_dir(home.join("loomd/turns")).map_or(0, |entries| entries.count())
}

fn start_params(thread: &str, text: &str, key: &str) -> Value {
    json!({ "threadId": thread, "input": [{ "type": "text", "text": text }], "clientUserMessageId": key })
}

#[tokio::test]
async fn a_turn_that_was_killed_while_the_model_answered_asks_it_again_and_ends() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, client, thread) = begin(&home, "never").await;
    let gate = Gate::new();
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "m1", "content": [] }));
    model.reply(begun.then(text_delta("half ")).wait(&gate));
    let turn = client.start_turn(&thread, "go").await.id;
    client.notification("item/agentMessage/delta").await;
    model.reply(message("all of it"));
    let (_server, client) = restarted(server, &home).await;
    let turns = ended(&client, &thread).await;
    assert_eq!(turns.len(), 1);
    assert_eq!((&turns[0]["id"], &turns[0]["status"]), (&json!(turn), &json!("completed")));
    assert_eq!(texts(&turns[0], "userMessage"), ["go"]);
    assert_eq!(texts(&turns[0], "agentMessage"), ["all of it"]);
    assert_eq!(model.calls().len(), 2);
    until("removed notes", async || (unfinished(&home.path()) == 0).then_some(())).await;
}

#[tokio::test]
async fn a_turn_whose_permission_profile_is_gone_is_interrupted_and_its_thread_can_be_used() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("features.shell_snapshot = false");
    let without = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    let home = home.with("[permissions.p.filesystem]\n\":minimal\" = \"read\"\n");
    let server = launch().websocket(&home).await;
    let client = connect(&server).await;
    let params = json!({ "cwd": home.work(), "approvalPolicy": "never", "permissions": "p" });
    let started = client.request("thread/start", params).await.expect("a thread");
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    let gate = Gate::new();
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "m1", "content": [] }));
    model.reply(begun.then(text_delta("half ")).wait(&gate));
    client.start_turn(&thread, "go").await;
    client.notification("item/agentMessage/delta").await;
    home.write("config.toml", &without);
    let (_server, client) = restarted(server, &home).await;
    until("removed notes", async || (unfinished(&home.path()) == 0).then_some(())).await;
    let left = ended(&client, &thread).await;
    assert_eq!((&left[0]["status"], texts(&left[0], "userMessage")), (&json!("interrupted"), vec!["go".into()]));
    client.request("thread/resume", json!({ "threadId": thread })).await.expect("it can be resumed");
    model.reply(message("again"));
    client.run_turn(&thread, "more").await;
    assert_eq!(turns(&client, &thread).await.len(), 2);
}

#[tokio::test]
async fn a_command_that_ran_when_the_server_was_killed_is_not_run_again_and_the_model_is_told() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, client, thread) = begin(&home, "never").await;
    model.reply(function_call("shell_command", counted(&home), "c1"));
    client.start_turn(&thread, "go").await;
    until_it_runs(&home).await;
    model.reply(message("I see"));
    let (_server, client) = restarted(server, &home).await;
    let turns = ended(&client, &thread).await;
    assert_eq!(runs(&home), 1);
    assert_eq!(turns[0]["status"], "completed");
    assert_eq!(texts(&turns[0], "agentMessage"), ["I see"]);
    let told = model.calls().last().unwrap().tool_output("c1").cloned().expect("an output");
    assert!(told.as_str().unwrap().starts_with("interrupted, outcome unknown"), "{told}");
    let command = turns[0]["items"].as_array().unwrap().iter().find(|item| item["id"] == "c1").expect("the command");
    assert_eq!((&command["status"], &command["exitCode"]), (&json!("failed"), &json!(-1)));
}

#[tokio::test]
async fn an_approval_that_was_open_when_the_server_was_killed_is_requested_again() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, client, thread) = begin(&home, "untrusted").await;
    std::fs::write(home.work().join("go"), "").unwrap();
    model.reply(function_call("shell_command", counted(&home), "c1"));
    client.start_turn(&thread, "go").await;
    let (_, before) = client.server_request(APPROVAL).await;
    model.reply(message("done"));
    let (_server, client) = restarted(server, &home).await;
    let resumed = client.request("thread/resume", json!({ "threadId": thread })).await.expect("it is loaded");
    assert_eq!(resumed["thread"]["turns"][0]["status"], "inProgress");
    let (id, again) = client.server_request(APPROVAL).await;
    for field in ["turnId", "itemId", "command", "cwd", "reason"] {
        assert_eq!(again.get(field), before.get(field), "{field}");
    }
    assert_eq!(runs(&home), 0);
    client.respond(&id, json!({ "decision": "accept" })).await;
    let turns = ended(&client, &thread).await;
    assert_eq!((&turns[0]["status"], runs(&home)), (&json!("completed"), 1));
    assert_eq!(texts(&turns[0], "agentMessage"), ["done"]);
}

#[tokio::test]
async fn a_compaction_that_was_killed_is_done_again() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, client, thread) = begin(&home, "never").await;
    model.reply(message("one"));
    client.run_turn(&thread, "hi").await;
    let gate = Gate::new();
    model.reply(message("a summary").after(&gate));
    client.request("thread/compact/start", json!({ "threadId": thread })).await.expect("it starts");
    until("call", async || (model.calls().len() == 2).then_some(())).await;
    model.reply(message("the summary"));
    let (_server, client) = restarted(server, &home).await;
    let turns = ended(&client, &thread).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[1]["status"], "completed");
    assert_eq!(
        turns[1]["items"].as_array().unwrap().iter().filter(|item| item["type"] == "contextCompaction").count(),
        1
    );
}

#[tokio::test]
async fn input_that_was_acknowledged_is_not_lost_with_the_server() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, client, thread) = begin(&home, "never").await;
    let gate = Gate::new();
    model.reply(streamed(&["half"]).wait(&gate));
    let turn = client.start_turn(&thread, "first").await.id;
    client.notification("item/agentMessage/delta").await;
    let mut steer = start_params(&thread, "second", "s");
    steer["expectedTurnId"] = json!(turn);
    client.request("turn/steer", steer.clone()).await.expect("it runs");
    // An output schema is that of a whole turn, so that this one waits for the first.
    let mut next = start_params(&thread, "third", "t");
    next["outputSchema"] = json!({ "type": "object" });
    let queued = client.request("turn/start", next.clone()).await.expect("it waits");
    model.reply(message("a")).reply(message("b")).reply(message("c"));
    let (_server, client) = restarted(server, &home).await;
    client.request("thread/resume", json!({ "threadId": thread })).await.expect("it is loaded");
    // Sent again by a client that does not know whether they were received.
    client.request("turn/start", next).await.expect("the same turn");
    let turns = ended(&client, &thread).await;
    assert_eq!(turns.len(), 2, "{turns:#?}");
    assert_eq!(texts(&turns[0], "userMessage"), ["first", "second"]);
    assert_eq!(texts(&turns[1], "userMessage"), ["third"]);
    assert_eq!(turns[1]["id"], queued["turn"]["id"]);
}

#[tokio::test]
async fn a_turn_that_was_acknowledged_and_killed_at_once_is_run_once() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    for round in 0..3 {
        let (server, client, thread) = begin(&home, "never").await;
        let started = client.request("turn/start", start_params(&thread, "go", "k")).await.expect("a turn");
        let (_server, client) = restarted(server, &home).await;
        client.request("thread/resume", json!({ "threadId": thread })).await.expect("it is loaded");
        let again = client.request("turn/start", start_params(&thread, "go", "k")).await.expect("the same turn");
        assert_eq!(again["turn"]["id"], started["turn"]["id"], "round {round}");
        let turns = ended(&client, &thread).await;
        assert_eq!(turns.len(), 1);
        assert_eq!((&turns[0]["status"], texts(&turns[0], "userMessage")), (&json!("completed"), vec!["go".into()]));
    }
}

#[tokio::test]
async fn a_server_on_stdio_shows_an_unfinished_turn_as_interrupted() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (mut server, client, thread) = begin(&home, "never").await;
    model.reply(function_call("shell_command", counted(&home), "c1"));
    client.start_turn(&thread, "go").await;
    until_it_runs(&home).await;
    server.signal(Signal::KILL);
    server.wait_exit().await;
    let stdio = launch().stdio(&home);
    stdio.initialize().await;
    let resumed = stdio.request("thread/resume", json!({ "threadId": thread })).await.expect("it is stored");
    assert_eq!(resumed["thread"]["turns"][0]["status"], "interrupted");
    model.reply(message("next"));
    stdio.run_turn(&thread, "and now?").await;
    drop(stdio);
    // The next turn has replaced the unfinished one.
    let server = launch().websocket(&home).await;
    let turns = ended(&*connect(&server).await, &thread).await;
    let states: Vec<&Value> = turns.iter().map(|turn| &turn["status"]).collect();
    assert_eq!((states, runs(&home)), (vec![&json!("interrupted"), &json!("completed")], 1));
}

#[tokio::test]
async fn turns_are_not_taken_up_where_that_is_turned_off() {
    let model = ScriptedModel::start().await;
    let home = home(&model).with("[loomd]\nrecover_turns = \"never\"\n");
    let (server, client, thread) = begin(&home, "never").await;
    model.reply(function_call("shell_command", counted(&home), "c1"));
    client.start_turn(&thread, "go").await;
    until_it_runs(&home).await;
    let (_server, client) = restarted(server, &home).await;
    let turns = turns(&client, &thread).await;
    assert_eq!((&turns[0]["status"], model.calls().len()), (&json!("interrupted"), 1));
}

#[tokio::test]
async fn a_turn_is_interrupted_or_pauses_when_its_last_client_is_disconnected() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let (server, first, _) = begin(&home, "never").await;
    let start = |policy: &str| {
        let params = json!({ "cwd": home.work(), "approvalPolicy": "never", "onDisconnect": policy });
        let first = (*first).clone();
        async move {
            let started = first.request("thread/start", params).await.expect("a thread");
            started["thread"]["id"].as_str().unwrap().to_owned()
        }
    };
    let (stopping, pausing) = (start("interrupt").await, start("pause").await);
    model.reply(function_call("shell_command", counted(&home), "c1"));
    first.start_turn(&stopping, "go").await;
    until_it_runs(&home).await;
    let gate = Gate::new();
    model.reply(function_call("update_plan", json!({ "plan": [] }), "c2").after(&gate)).reply(message("done"));
    first.start_turn(&pausing, "go").await;
    until("call", async || (model.calls().len() == 2).then_some(())).await;
    drop(first);
    let second = connect(&server).await;
    let stopped = ended(&second, &stopping).await;
    assert_eq!(stopped[0]["status"], "interrupted");
    gate.open();
    // It goes on when a client is there, and not before.
    until("pause", async || {
        let turn = turns(&second, &pausing).await.remove(0);
        turn["items"].as_array().is_some_and(|items| !items.is_empty()).then_some(())
    })
    .await;
    assert_eq!(model.calls().len(), 2);
    second.request("thread/resume", json!({ "threadId": pausing, "onDisconnect": "continue" })).await.expect("loaded");
    let turns = ended(&second, &pausing).await;
    assert_eq!(texts(&turns[0], "agentMessage"), ["done"]);
}

/// A number from the environment, for longer runs than in CI.
fn configured(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A command that counts itself under the id of its call.
fn counted_as(home: &Home, call: &str) -> Value {
    let script = format!("echo {call} >> {}; sleep 0.02", home.work().join("count").display());
    json!({ "command": script, "login": false })
}

/// Approves what is asked until all turns have ended.
async fn approve_until_ended(client: &WsConnection, thread: &str) -> Vec<Value> {
    tokio::select! {
        turns = ended(client, thread) => turns,
        () = async {
            loop {
                let (id, _) = client.server_request(APPROVAL).await;
                client.respond(&id, json!({ "decision": "accept" })).await;
            }
        } => unreachable!("it does not end"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_that_are_killed_at_any_moment_end_and_no_command_runs_twice() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let mut random = fastrand::Rng::with_seed(configured("LOOMD_SEED", 1));
    for round in 0..configured("LOOMD_RECOVERIES", 8) {
        let policy = if random.bool() { "never" } else { "untrusted" };
        let (mut server, mut client, thread) = begin(&home, policy).await;
        model.forget_replies();
        for step in 0..3 {
            let call = format!("call_{round}_{step}");
            model.reply(match random.u8(0..3) {
                0 => streamed(&["some ", "words"]).drip(),
                1 => function_call("shell_command", counted_as(&home, &call), &call),
                _ => {
                    let (one, two) = (format!("{call}_a"), format!("{call}_b"));
                    function_call("shell_command", counted_as(&home, &one), &one).then(function_call(
                        "shell_command",
                        counted_as(&home, &two),
                        &two,
                    ))
                }
            });
        }
        let compacts = random.u8(0..4) == 0;
        let started = client.request("turn/start", start_params(&thread, "go", "k")).await.expect("a turn");
        for _ in 0..random.u8(1..4) {
            if compacts && random.bool() {
                // It replaces the running turn.
                client.request("thread/compact/start", json!({ "threadId": thread })).await.expect("it starts");
            }
            let pause = Duration::from_millis(random.u64(0..60));
            _ = tokio::time::timeout(pause, async {
                let (id, _) = client.server_request(APPROVAL).await;
                if random.bool() {
                    client.respond(&id, json!({ "decision": "accept" })).await;
                }
                std::future::pending::<()>().await;
            })
            .await;
            (server, client) = restarted(server, &home).await;
            client.request("thread/resume", json!({ "threadId": thread })).await.expect("it is loaded");
        }
        let turns = approve_until_ended(&client, &thread).await;
        assert_eq!(turns[0]["id"], started["turn"]["id"], "round {round}");
        assert_eq!(texts(&turns[0], "userMessage"), ["go"], "round {round}: {turns:#?}");
        let last = turns.last().unwrap();
        let replaced = compacts && turns.len() > 1;
        assert!(last["status"] == "completed" || replaced, "round {round}: {turns:#?}");
        let text = std::fs::read_to_string(home.work().join("count")).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert!(lines.is_sorted_by(|one, next| one < next), "round {round}: a command ran twice: {lines:?}");
        server.signal(Signal::KILL);
        server.wait_exit().await;
    }
}

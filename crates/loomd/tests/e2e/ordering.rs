//! Order of events under concurrent and interrupted turns: every request is answered once, every started item
//! completes before its turn, nothing of a turn follows its end.

use futures_util::future::join_all;
use loomd_testkit::model::{Reply, function_call, message, reasoning, streamed};
use loomd_testkit::{Home, Peer, ScriptedModel};
use serde_json::{Value, json};

use crate::audit::settled;
use crate::common::{launch, until};

/// Threads with turns at the same time.
const THREADS: u64 = 8;

/// Rounds of input per thread.
const ROUNDS: u64 = 66;

/// Requests of each client that are sent without waiting.
const FLOOD: u64 = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_keep_their_order_when_turns_are_steered_and_interrupted() {
    let model = ScriptedModel::start().await;
    script(&model, THREADS * ROUNDS * 3);
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let server = launch().websocket(&home).await;
    let clients = (0..THREADS).map(async |seed| {
        let client = server.connect().await;
        client.initialize().await;
        run_turns(&client, fastrand::Rng::with_seed(seed)).await
    });
    let turns: usize = join_all(clients).await.into_iter().sum();
    assert!(turns >= 500, "only {turns} turns were run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_about_one_thread_is_answered() {
    let model = ScriptedModel::start().await;
    script(&model, FLOOD);
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let server = launch().websocket(&home).await;
    let (one, two) = (server.connect().await, server.connect().await);
    one.initialize().await;
    two.initialize().await;
    let thread = one.start_thread(Default::default()).await.id;
    one.run_turn(&thread, "begin").await;
    two.request("thread/resume", json!({ "threadId": thread })).await.expect("it can be joined");
    let flood = async |client: &Peer, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sent = Vec::new();
        for number in 0..FLOOD {
            let (method, params) = random_request(&mut random, &thread, number);
            sent.push((method, client.send_request(method, params).await));
        }
        for (method, id) in sent {
            // Many are refused in the current state, which is a response, too.
            if let Err(error) = client.response(&id).await {
                assert_eq!(error.code, -32600, "{method}: {error}");
            }
        }
    };
    tokio::join!(flood(&one, 1), flood(&two, 2));
    // Queued turns complete, too.
    let idle = json!({ "type": "idle" });
    until("idle thread", async || {
        let read = one.request("thread/read", json!({ "threadId": thread })).await.expect("a thread");
        read["thread"]["status"] == idle
    })
    .await;
    assert_eq!(settled(&one).await, [] as [String; 0]);
    let last = started(&one, &thread, "and now?").await.expect("a turn");
    completed(&one, &thread, &last).await;
}

/// A random request about a thread.
fn random_request(random: &mut fastrand::Rng, thread: &str, number: u64) -> (&'static str, Value) {
    let input = json!([{ "type": "text", "text": format!("said {number}") }]);
    match random.u8(0..16) {
        0..5 => ("turn/start", json!({ "threadId": thread, "input": input })),
        5..7 => ("turn/interrupt", json!({ "threadId": thread, "turnId": "" })),
        7 => ("turn/steer", json!({ "threadId": thread, "expectedTurnId": "another", "input": input })),
        8 => ("thread/compact/start", json!({ "threadId": thread })),
        9..11 => ("thread/shellCommand", json!({ "threadId": thread, "command": "true" })),
        11 => ("thread/rollback", json!({ "threadId": thread, "numTurns": 1 })),
        12 => ("thread/read", json!({ "threadId": thread, "includeTurns": true })),
        13 => ("thread/backgroundTerminals/clean", json!({ "threadId": thread })),
        14 => ("review/start", json!({ "threadId": thread, "target": { "type": "custom", "instructions": "look" } })),
        _ => ("thread/name/set", json!({ "threadId": thread, "name": format!("name {number}") })),
    }
}

/// Scripts replies for any thread, in any order: most call tools, and each turn ends.
fn script(model: &ScriptedModel, count: u64) {
    let mut random = fastrand::Rng::with_seed(42);
    for number in 0..count {
        let id = |kind: &str| format!("{kind}_{number}");
        let shell = || function_call("shell_command", json!({ "command": "true", "login": false }), &id("s"));
        let session = || function_call("exec_command", json!({ "cmd": "true", "login": false }), &id("e"));
        model.reply(match random.u8(0..10) {
            0..3 => message("done"),
            3..5 => streamed(&["one ", "two ", "three"]),
            5 => reasoning(&["thinking"], &[]).then(message("thought")),
            6..8 => streamed(&["let me ", "see"]).then(shell()),
            8 => session(),
            _ => shell().then(session()).then(Reply::new()),
        });
    }
}

/// Runs turns in a thread of its own and disturbs them; returns the number of turns.
async fn run_turns(client: &Peer, mut random: fastrand::Rng) -> usize {
    let thread = client.start_thread(Default::default()).await.id;
    for round in 0..ROUNDS {
        let turn = started(client, &thread, &format!("round {round}")).await.expect("an idle thread takes input");
        match random.u8(0..10) {
            0..4 => {}
            4 => interrupt(client, &thread, &turn).await,
            5 => {
                client.notification_where("item/started", |params| params["turnId"] == *turn).await;
                interrupt(client, &thread, &turn).await;
            }
            6 => {
                let is_call =
                    |params: &Value| params["turnId"] == *turn && params["item"]["type"] == "commandExecution";
                let began = client.notification_where("item/started", is_call);
                // This turn may have no command.
                tokio::select! {
                    _ = began => interrupt(client, &thread, &turn).await,
                    () = completed(client, &thread, &turn) => continue,
                }
            }
            7 => steer(client, &thread, &turn).await,
            8 => {
                steer(client, &thread, &turn).await;
                interrupt(client, &thread, &turn).await;
            }
            _ => {
                let other = started(client, &thread, "meanwhile").await.expect("a busy thread takes input");
                if other != turn {
                    completed(client, &thread, &other).await;
                }
            }
        }
        completed(client, &thread, &turn).await;
    }
    assert_eq!(settled(client).await, [] as [String; 0]);
    let messages = client.messages();

    // The events match the stored turns.
    let ended = |message: &&Value| message["method"] == "turn/completed" && message["params"]["threadId"] == *thread;
    let pair = |turn: &Value| (turn["id"].clone(), turn["status"].clone());
    let told: Vec<_> = messages.iter().filter(ended).map(|message| pair(&message["params"]["turn"])).collect();
    let read = client.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await;
    let read = read.expect("a thread");
    let stored: Vec<_> = read["thread"]["turns"].as_array().expect("turns").iter().map(pair).collect();
    assert_eq!(stored, told);
    told.len()
}

async fn started(client: &Peer, thread: &str, text: &str) -> Option<String> {
    let input = json!([{ "type": "text", "text": text }]);
    let answer = client.request("turn/start", json!({ "threadId": thread, "input": input })).await.ok()?;
    answer["turn"]["id"].as_str().map(Into::into)
}

async fn completed(client: &Peer, thread: &str, turn: &str) {
    let is_it = |params: &Value| params["threadId"] == *thread && params["turn"]["id"] == *turn;
    client.notification_where("turn/completed", is_it).await;
}

/// The turn may be over by then; the request is answered all the same.
async fn interrupt(client: &Peer, thread: &str, turn: &str) {
    let answer = client.request("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await;
    if let Err(error) = answer {
        assert!(error.message.starts_with("expected active turn id"), "{error}");
    }
}

async fn steer(client: &Peer, thread: &str, turn: &str) {
    let input = json!([{ "type": "text", "text": "rather this" }]);
    let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": input });
    if let Err(error) = client.request("turn/steer", params).await {
        assert_eq!(error.message, "no active turn to steer");
    }
}

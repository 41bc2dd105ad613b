//! What clients may rely on when turns run side by side and are disturbed at any moment: every request is
//! answered once, every item that begins ends before its turn, nothing of a turn comes after its end.

use futures_util::future::join_all;
use loomd_testkit::model::{Reply, function_call, message, reasoning, streamed};
use loomd_testkit::{Home, Peer, ScriptedModel};
use serde_json::{Value, json};

use crate::audit::settled;
use crate::common::launch;

/// Threads whose turns run at the same time.
const THREADS: u64 = 8;

/// How often something is said in each.
const ROUNDS: u64 = 66;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_keep_their_order_however_they_are_disturbed() {
    let model = ScriptedModel::start().await;
    script(&model, THREADS * ROUNDS * 3);
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let server = launch().websocket(&home).await;
    let clients = (0..THREADS).map(async |seed| {
        let client = server.connect().await;
        client.initialize().await;
        talk(&client, fastrand::Rng::with_seed(seed)).await
    });
    let turns: usize = join_all(clients).await.into_iter().sum();
    assert!(turns >= 500, "only {turns} turns were run");
}

/// Answers for any thread, in any order: most call tools, and end their turn sooner or later.
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

/// Talks in a thread of its own, and disturbs its turns; how many turns there were.
async fn talk(client: &Peer, mut random: fastrand::Rng) -> usize {
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
                // There may be no command in this turn.
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

    // What was told is what is stored.
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

/// The turn may be over by then; it is answered all the same.
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

//! SIGKILL at any moment of a turn: completed items are stored, and the thread can be continued.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_testkit::model::{Reply, function_call, message, reasoning, shell, streamed};
use loomd_testkit::{Home, ScriptedModel, Server, Signal};
use serde_json::{Value, json};

use crate::audit::settled;
use crate::common::{initialized, without_times};
use crate::crash::damaged_lines;

/// How often the server is killed.
const KILLS: usize = 40;

/// Turns of about this many messages are run before each kill.
const MESSAGES: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completed_items_survive_sigkill_during_a_turn() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let mut random = fastrand::Rng::with_seed(7);
    let mut shown = BTreeMap::new();
    let thread = {
        let server = initialized(&home).await;
        let thread = server.start_thread(Default::default()).await.id;
        server.run_turn(&thread, "begin").await;
        note_completed(&server, &thread, &mut shown);
        thread
    };
    for kill in 0..KILLS {
        for _ in 0..8 {
            model.reply(random_reply(&mut random));
        }
        let mut server = initialized(&home).await;
        server.request("thread/resume", json!({ "threadId": thread })).await.expect("the thread can be taken up");
        let heard = server.messages().len();
        let last = heard + random.usize(0..MESSAGES);
        let talk = async {
            for number in 0.. {
                server.run_turn(&thread, &format!("turn {kill}-{number}")).await;
            }
        };
        let enough = async {
            while server.messages().len() < last {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = talk => {}
            () = enough => {}
        }
        server.signal(Signal::KILL);
        server.wait_exit().await;
        // Messages sent before the kill may not be read yet.
        server.closed().await;
        note_completed(&server, &thread, &mut shown);
    }

    let server = initialized(&home).await;
    let resumed = server.request("thread/resume", json!({ "threadId": thread })).await.expect("the thread is fine");
    let stored = items(resumed["thread"]["turns"].as_array().expect("turns"));
    let lost: Vec<_> = shown.iter().filter(|(key, item)| stored.get(*key) != Some(*item)).collect();
    assert_eq!(lost, [], "of {} items that were shown as done", shown.len());
    // A kill inside of a write leaves at most the beginning of one record, on a line of its own.
    let damaged = damaged_lines(&home.path());
    assert!(damaged.len() <= KILLS, "{} damaged lines after {KILLS} kills", damaged.len());
    let torn = |line: &&String| serde_json::from_str::<Value>(line).is_err_and(|error| error.is_eof());
    assert_eq!(damaged.iter().filter(|line| !torn(line)).collect::<Vec<_>>(), [] as [&String; 0]);
    // Replies that the killed servers did not request.
    model.forget_replies();
    model.reply(message("still here"));
    assert_eq!(json!(server.run_turn(&thread, "and now?").await)["status"], "completed");
    assert_eq!(settled(&server).await, [] as [String; 0]);
}

fn random_reply(random: &mut fastrand::Rng) -> Reply {
    let id = format!("call_{}", random.u64(..));
    let session = json!({ "cmd": "echo session", "login": false });
    match random.u8(0..6) {
        0 => message("done"),
        1 => streamed(&["one ", "two ", "three"]),
        2 => reasoning(&["thinking"], &["hard"]).then(message("thought")),
        3 => streamed(&["let me see"]).then(shell("echo command")),
        4 => function_call("exec_command", session, &id),
        _ => shell("true").then(function_call("exec_command", session, &id)),
    }
}

/// The turn id and the id of an item.
type ItemKey = (String, String);

fn note_completed(server: &Server, thread: &str, shown: &mut BTreeMap<ItemKey, Value>) {
    for mut done in server.notifications("item/completed") {
        if done["threadId"] == *thread {
            let key = (done["turnId"].to_string(), done["item"]["id"].to_string());
            shown.insert(key, without_times(done["item"].take()));
        }
    }
}

fn items(turns: &[Value]) -> BTreeMap<ItemKey, Value> {
    let of = |turn: &Value| turn["items"].as_array().cloned().unwrap_or_default();
    let all = turns.iter().flat_map(|turn| of(turn).into_iter().map(move |item| (turn["id"].to_string(), item)));
    all.map(|(turn, item)| ((turn, item["id"].to_string()), item)).collect()
}

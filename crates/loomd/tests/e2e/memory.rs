//! Loading a long thread does not keep its history in memory.

use std::fmt::Write;
use std::fs;

use loomd_testkit::{Home, soak};
use serde_json::json;

use crate::common::initialized;

const MIB: usize = 1 << 20;
const TURNS: usize = 5_000;
const ID: &str = "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6";

#[tokio::test]
async fn loading_a_thread_of_thousands_of_turns_does_not_raise_memory() {
    let home = Home::empty();
    let folder = home.path().join("sessions/2025/03/04");
    fs::create_dir_all(&folder).unwrap();
    let name = format!("rollout-2025-03-04T05-06-07-{ID}.jsonl");
    fs::write(folder.join(name), rollout()).unwrap();
    let server = initialized(&home).await;
    let pid = server.pid();
    let anonymous = || usize::try_from(soak::memory(pid).anonymous).unwrap();
    // The first read opens the index.
    server.request("thread/read", json!({ "threadId": ID })).await.expect("a thread");
    let before = anonymous();
    for _ in 0..3 {
        let read = server.request("thread/read", json!({ "threadId": ID, "includeTurns": true })).await.expect("turns");
        assert_eq!(read["thread"]["turns"].as_array().unwrap().len(), TURNS);
        let resumed = server.request("thread/resume", json!({ "threadId": ID })).await.expect("turns");
        assert_eq!(resumed["thread"]["turns"].as_array().unwrap().len(), TURNS);
    }
    // The rollout has 14 MiB, and each response 6 MiB.
    soak::settles("memory", before + 5 * MIB, anonymous).await;
}

fn rollout() -> String {
    let mut text = String::new();
    let mut line = |kind: &str, payload: serde_json::Value| {
        let line = json!({ "timestamp": "2025-03-04T05:06:07.000Z", "type": kind, "payload": payload });
        writeln!(text, "{line}").unwrap();
    };
    line(
        "session_meta",
        json!({ "id": ID, "timestamp": "2025-03-04T05:06:07.000Z", "cwd": "/", "originator": "x", "cli_version": "1" }),
    );
    for turn in 0..TURNS {
        let said = format!("{} {turn}", "lorem ipsum ".repeat(40));
        let item = |role: &str, part: &str| json!({ "type": "message", "role": role, "content": [{ "type": part, "text": said }] });
        line("event_msg", json!({ "type": "task_started", "turn_id": format!("t{turn}") }));
        line("response_item", item("user", "input_text"));
        line("event_msg", json!({ "type": "user_message", "message": said }));
        line("event_msg", json!({ "type": "agent_message", "message": said }));
        line("response_item", item("assistant", "output_text"));
        line("event_msg", json!({ "type": "task_complete", "turn_id": format!("t{turn}") }));
    }
    text
}

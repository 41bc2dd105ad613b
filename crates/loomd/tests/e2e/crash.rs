//! SIGKILL at any moment: acknowledged requests took effect.

use std::collections::BTreeSet;

use loomd_testkit::{Home, Signal};
use serde_json::{Value, json};

use crate::common::initialized;

/// How often the server is killed.
const KILLS: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_forks_and_names_survive_sigkill() {
    let home = Home::empty();
    let mut threads: BTreeSet<String> = BTreeSet::new();
    let mut name = None;
    let source = {
        let server = initialized(&home).await;
        let history =
            json!([{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }]);
        let params = json!({ "threadId": "", "history": history });
        let made = server.request("thread/resume", params).await.expect("a thread with a past");
        made["thread"]["id"].as_str().expect("an id").to_owned()
    };
    for kill in 0..KILLS {
        let mut server = initialized(&home).await;
        // Forks and names as fast as they are answered, until the server is killed.
        let work = async {
            for number in 0.. {
                let fork =
                    server.send_request("thread/fork", json!({ "threadId": source, "excludeTurns": true })).await;
                let rename = json!({ "threadId": source, "name": format!("{kill}-{number}") });
                let rename = server.send_request("thread/name/set", rename).await;
                if number == kill % 7 {
                    break;
                }
                let fork = server.response(&fork).await.expect("a fork");
                threads.insert(fork["thread"]["id"].as_str().expect("an id").to_owned());
                server.response(&rename).await.expect("a name");
                name = Some(format!("{kill}-{number}"));
            }
        };
        work.await;
        server.signal(Signal::KILL);
        server.wait_exit().await;
    }

    let server = initialized(&home).await;
    for id in &threads {
        let read = server.request("thread/read", json!({ "threadId": id, "includeTurns": true })).await;
        read.unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
    }
    let shown = server.request("thread/read", json!({ "threadId": source })).await.expect("the source");
    let (last_kill, last_number) = parts(&name.expect("some names were acknowledged"));
    let (kill, number) = parts(shown["thread"]["name"].as_str().expect("a name"));
    assert!((kill, number) >= (last_kill, last_number), "{kill}-{number} is older than what was acknowledged");
    let lines = damaged_lines(&home.path());
    assert_eq!(lines, [] as [String; 0], "every line that is not the last of its file is whole");
}

fn parts(name: &str) -> (u64, u64) {
    let (kill, number) = name.split_once('-').expect("two numbers");
    (kill.parse().expect("a number"), number.parse().expect("a number"))
}

/// Invalid JSON lines of rollouts, except torn last ones.
pub fn damaged_lines(home: &std::path::Path) -> Vec<String> {
    let mut damaged = Vec::new();
    let mut folders = vec![home.join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a rollout");
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            damaged
                .extend(whole.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).map(str::to_owned));
        }
    }
    damaged
}

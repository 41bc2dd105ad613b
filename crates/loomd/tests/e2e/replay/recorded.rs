//! A recording of fifty turns, played by the rehearsal model: clients get the same messages, byte by byte, except ids
//! and times. Tools run beside the stream that calls them, and a lagging client gets merged deltas; so token counts
//! are compared on their own, and neighbouring deltas are joined.

use std::collections::HashMap;

use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use super::{answers, configure, home};
use crate::common::launch;

const TURNS: usize = 50;

/// Runs the fifty turns.
async fn run(server: &Server, model: Option<&ScriptedModel>) -> Vec<Value> {
    server.initialize().await;
    let thread = server.start_thread(Default::default()).await;
    for turn in 0..TURNS {
        if let Some(model) = model {
            answers(turn).into_iter().for_each(|answer| _ = model.reply(answer));
        }
        server.run_turn(&thread.id, &format!("turn {turn}")).await;
    }
    server.messages().into_iter().filter(|message| message.get("method").is_some()).collect()
}

#[tokio::test]
async fn a_recording_of_fifty_turns_plays_byte_by_byte() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let recording = home.path().join("recording.jsonl");
    let told = run(&launch().env("LOOMD_RECORD", &recording).stdio(&home), Some(&model)).await;
    assert_eq!(model.unused(), 0, "every answer was asked for");
    empty(&home);
    drop(model);
    // From here on the scripted model is gone.
    configure(&home, "");
    let again = run(&launch().env("LOOMD_SCENARIO", &recording).stdio(&home), None).await;
    let (told, again) = (plain(told), plain(again));
    assert!(told.0.len() > TURNS * 8 && told.1.len() > TURNS, "{} {}", told.0.len(), told.1.len());
    for (number, (told, again)) in told.0.iter().zip(&again.0).enumerate() {
        assert_eq!(told, again, "notification {number}");
    }
    assert_eq!(told, again);
}

/// Removes the files of the first run.
fn empty(home: &Home) {
    for entry in std::fs::read_dir(home.work()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

/// The messages about threads, turns and items, and those about usage, each as text.
fn plain(messages: Vec<Value>) -> (Vec<String>, Vec<String>) {
    let mut names = IdOrder::default();
    let mut all: Vec<Value> = Vec::new();
    for mut message in messages {
        names.blank(&mut message);
        let joins = all.last().is_some_and(|last| is_delta(last) && apart(last) == apart(&message));
        match all.last_mut() {
            Some(last) if joins => {
                let text = [&last["params"]["delta"], &message["params"]["delta"]].map(|delta| delta.as_str().unwrap());
                last["params"]["delta"] = json!(text.concat());
            }
            _ => all.push(message),
        }
    }
    let counted = ["thread/tokenUsage/updated", "account/rateLimits/updated"];
    let (counts, told): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|message| counted.iter().any(|method| message["method"] == *method));
    let texts = |list: Vec<Value>| list.iter().map(Value::to_string).collect();
    (texts(told), texts(counts))
}

fn is_delta(message: &Value) -> bool {
    message["params"]["delta"].is_string()
}

/// A delta without its text.
fn apart(message: &Value) -> Value {
    let mut message = message.clone();
    message["params"]["delta"] = json!("");
    message
}

/// Replaces ids by their order of appearance.
#[derive(Default)]
struct IdOrder(HashMap<String, usize>);

impl IdOrder {
    fn blank(&mut self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.blank(value)),
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    match (name.as_str(), &*value) {
                        ("id" | "threadId" | "turnId" | "rootTurnId" | "itemId" | "sessionId", Value::String(id)) => {
                            *value = self.name(id);
                        }
                        // It contains the id and the time of the thread.
                        ("path", Value::String(path)) if path.ends_with(".jsonl") => *value = json!("(rollout)"),
                        (
                            "createdAt" | "updatedAt" | "recencyAt" | "startedAt" | "completedAt" | "startedAtMs"
                            | "completedAtMs" | "durationMs",
                            Value::Number(_),
                        ) => {
                            *value = json!(0);
                        }
                        _ => self.blank(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, id: &str) -> Value {
        let next = self.0.len();
        json!(format!("id {}", self.0.entry(id.to_owned()).or_insert(next)))
    }
}

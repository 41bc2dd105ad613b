//! The built-in rehearsal model: a whole turn without key or network, and scenarios.

use loomd_config::config_toml::ModelProvider;
use loomd_testkit::{Home, Server};
use serde_json::{Value, json};

use crate::common::{initialized, launch, loomd, output};

fn home() -> Home {
    Home::empty().with(
        r#"
        model = "rehearsal"
        model_provider = "rehearsal"
        approval_policy = "never"
        sandbox_mode = "danger-full-access"
        "#,
    )
}

async fn start(server: &Server) -> String {
    let started = server.request("thread/start", json!({})).await.expect("a thread can be started");
    started["thread"]["id"].as_str().unwrap().to_owned()
}

/// The types of the turn's completed items, in order, and its status.
async fn turn(server: &Server, thread: &str, prompt: &str) -> (Vec<String>, Value) {
    let before = server.notifications("item/completed").len();
    server.start_turn(thread, prompt).await;
    let ended = server.notification_where("turn/completed", |params| params["threadId"] == thread).await;
    let items = server.notifications("item/completed");
    let kinds = items[before..].iter().map(|params| params["item"]["type"].as_str().unwrap().to_owned()).collect();
    (kinds, ended["turn"]["status"].clone())
}

#[tokio::test]
async fn a_whole_turn_runs_without_a_key() {
    let home = home();
    let server = initialized(&home).await;
    let thread = start(&server).await;
    let (kinds, status) = turn(&server, &thread, "demo").await;
    let expected = ["userMessage", "reasoning", "agentMessage", "commandExecution", "fileChange", "agentMessage"];
    assert_eq!((kinds, status), (expected.map(str::to_owned).to_vec(), json!("completed")));
    assert_eq!(server.notifications("turn/plan/updated").len(), 2);
    let diff = server.notifications("turn/diff/updated");
    assert!(diff[0]["diff"].as_str().unwrap().contains("+This note was written by the rehearsal model."), "{diff:?}");
    assert!(home.work().join("rehearsal.txt").exists());
}

#[tokio::test]
async fn a_scenario_is_played_call_by_call() {
    let home = home();
    let file = home.path().join("scenario.jsonl");
    let lines = [
        json!({ "run": "echo hello" }),
        json!({ "answer": {} }),
        json!({ "fail": "disconnected", "retry_after_ms": 0 }),
        json!({ "answer": {} }),
        json!({ "say": "Well." }),
        json!({ "answer": {} }),
        json!({ "fail": "overloaded" }),
    ];
    std::fs::write(&file, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let server = launch().env("LOOMD_SCENARIO", &file).stdio(&home);
    server.initialize().await;
    let thread = start(&server).await;
    let (kinds, status) = turn(&server, &thread, "whatever").await;
    let expected = ["userMessage", "commandExecution", "agentMessage"];
    assert_eq!((kinds, status), (expected.map(str::to_owned).to_vec(), json!("completed")));
    assert_eq!(server.notifications("error")[0]["willRetry"], json!(true));
    let (kinds, status) = turn(&server, &thread, "and now?").await;
    assert_eq!((kinds, status), (vec!["userMessage".to_owned()], json!("failed")));
    // After its end the prompt is followed.
    let (kinds, _) = turn(&server, &thread, "think hard; say done").await;
    assert_eq!(kinds, ["userMessage", "reasoning", "agentMessage"]);
}

#[tokio::test]
async fn models_lists_the_usable_providers() {
    let home = Home::empty().with("[model_providers.mine]\nname = 'Mine'\nenv_key = 'LOOMD_TEST_NO_SUCH_KEY'");
    let mut command = loomd(&home);
    // The environment of the test may have keys, which must not be used.
    for provider in ModelProvider::built_in_ids().filter_map(ModelProvider::built_in) {
        command.env_remove(provider.env_key.unwrap_or_default());
    }
    let listed = output(command.arg("models")).await;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    for words in ["rehearsal: built in", "openai: not signed in", "\n  mine         LOOMD_TEST_NO_SUCH_KEY\n"] {
        assert!(listed.stdout.contains(words), "{}", listed.stdout);
    }
}

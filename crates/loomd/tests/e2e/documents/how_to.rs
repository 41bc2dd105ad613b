//! The examples of the how-tos do what the text says.

use std::fs;

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use super::{block, root};
use crate::common::{initialized, launch};

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// A home with the rehearsal, without a sandbox.
fn rehearsal(config: &str) -> Home {
    let home =
        Home::empty().with("model = 'rehearsal'\nmodel_provider = 'rehearsal'\nsandbox_mode = 'danger-full-access'");
    home.with(config)
}

async fn start(server: &Server, params: Value) -> Value {
    server.request("thread/start", params).await.unwrap()
}

async fn turn(server: &Server, thread: &Value, text: &str) {
    let id = thread["thread"]["id"].as_str().unwrap();
    server.start_turn(id, text).await;
    server.notification("turn/completed").await;
}

/// The status of each completed command.
fn commands(server: &Server) -> Vec<(String, String)> {
    let completed = server.notifications("item/completed");
    let items = completed.iter().map(|params| &params["item"]).filter(|item| item["type"] == "commandExecution");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    items.map(|item| (text(&item["command"]), text(&item["status"]))).collect()
}

#[tokio::test]
async fn agents_md_files_are_sent_from_the_most_general_to_the_most_specific() {
    let model = ScriptedModel::start().await;
    model.reply(message("done"));
    let home = Home::new(&model).with(&block(&document("agents-md.md"), "config.toml"));
    let inner = home.work().join("crates/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(home.work().join("WORKSPACE")).unwrap();
    home.write("AGENTS.md", "OF THE HOME");
    fs::write(home.work().join("AGENTS.md"), block(&document("agents-md.md"), "AGENTS.md")).unwrap();
    fs::write(home.work().join("crates/CONTRIBUTING.md"), "OF THE FALLBACK").unwrap();
    fs::write(inner.join("AGENTS.md"), "NOT USED").unwrap();
    fs::write(inner.join("AGENTS.override.md"), "OF THE OVERRIDE").unwrap();
    let server = initialized(&home).await;
    let thread = start(&server, json!({ "cwd": inner })).await;
    turn(&server, &thread, "go").await;
    let sent = model.call(0).await.body.to_string();
    let found: Vec<_> = ["OF THE HOME", "Notes for agents", "OF THE FALLBACK", "OF THE OVERRIDE"]
        .map(|text| sent.find(text).unwrap_or_else(|| panic!("{text} is not sent")))
        .into();
    assert!(found.is_sorted(), "{found:?}");
    assert!(!sent.contains("NOT USED"));
}

#[tokio::test]
async fn the_hook_blocks_a_push_and_nothing_else() {
    let text = document("hooks.md");
    let home = rehearsal(&block(&text, "config.toml"));
    home.write("hooks.json", &block(&text, "hooks.json"));
    fs::create_dir(home.user().join(".codex")).unwrap();
    fs::write(home.user().join(".codex/no-push.sh"), block(&text, "no-push.sh")).unwrap();
    let server = initialized(&home).await;
    let thread = start(&server, json!({ "approvalPolicy": "never" })).await;
    turn(&server, &thread, "run `git push`; run `echo hi`; say done").await;
    let hooks = server.notifications("hook/completed");
    let states: Vec<_> = hooks.iter().map(|params| params["run"]["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["blocked", "completed"], "{hooks:#?}");
    let [(command, status)] = commands(&server).try_into().unwrap();
    assert!(command.contains("echo hi") && status == "completed", "{command} {status}");
}

#[tokio::test]
async fn the_rules_allow_prompt_and_forbid() {
    let text = document("rules.md");
    let home = rehearsal("");
    home.write("rules/default.rules", &block(&text, "default.rules"));
    home.write("rules/checked.rules", &block(&text, "checked.rules"));
    let server = initialized(&home).await;
    let thread = start(&server, json!({ "approvalPolicy": "untrusted" })).await;
    let id = thread["thread"]["id"].as_str().unwrap();
    server
        .start_turn(id, "run `cargo test --no-such-flag`; run `git push --force`; run `git push nowhere`; say done")
        .await;
    let (request, params) = server.server_request("item/commandExecution/requestApproval").await;
    assert!(params["command"].as_str().unwrap().contains("git push nowhere"), "{params}");
    assert!(params["reason"].as_str().unwrap().contains("others see it at once"), "{params}");
    server.respond(&request, json!({ "decision": "decline" })).await;
    server.notification("turn/completed").await;
    assert!(server.notifications("configWarning").is_empty());
    let asked = server.methods().iter().filter(|method| method.ends_with("requestApproval")).count();
    assert_eq!(asked, 1);
    let [(allowed, ran), (_, forbidden), (_, declined)] = commands(&server).try_into().unwrap();
    assert!(allowed.contains("cargo test") && ran != "declined", "{allowed} {ran}");
    assert_eq!([forbidden, declined], ["declined", "declined"]);
}

#[tokio::test]
async fn profiles_are_selected_by_argument_and_by_thread() {
    let text = document("profiles.md");
    let home = Home::empty().with(&block(&text, "config.toml"));
    let server = initialized(&home).await;
    let shown = |started: &Value| [started["approvalPolicy"].clone(), started["sandbox"]["type"].clone()];
    let usual = start(&server, json!({ "cwd": home.work() })).await;
    assert_eq!(shown(&usual), [json!("on-request"), json!("readOnly")]);
    let careful = start(&server, json!({ "cwd": home.work(), "config": { "profile": "careful" } })).await;
    assert_eq!(shown(&careful), [json!("untrusted"), json!("readOnly")]);
    let server = launch().args(["-c", "profile=ci"]).stdio(&home);
    server.initialize().await;
    let ci = start(&server, json!({ "cwd": home.work() })).await;
    assert_eq!(shown(&ci), [json!("never"), json!("workspaceWrite")]);
}

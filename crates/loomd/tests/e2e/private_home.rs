//! Files in the home are accessible to their owner only, whatever the umask.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, Launch, ScriptedModel};
use serde_json::json;

use crate::common::{LOOMD, until};

/// The server with umask 0.
fn launch_with_umask_0() -> Launch {
    Launch::new("sh").args(["-c", "umask 0; exec \"$0\" \"$@\"", LOOMD, "app-server"])
}

fn everything_in(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

/// Names of what was added to the home since `before`, each of which must be private.
fn private(home: &Home, before: &BTreeSet<PathBuf>) -> Vec<String> {
    let root = home.path();
    let new: Vec<_> = everything_in(&root).into_iter().filter(|path| !before.contains(path)).collect();
    for path in &new {
        let metadata = fs::symlink_metadata(path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{}", path.display());
    }
    new.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
}

#[track_caller]
fn assert_has(names: &[String], wanted: &[&str]) {
    for wanted in wanted {
        assert!(names.iter().any(|name| name.contains(wanted)), "nothing was kept as {wanted}: {names:#?}");
    }
}

#[tokio::test]
async fn files_created_by_a_turn_are_private() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("approval_policy = \"untrusted\"");
    let before = everything_in(&home.path());
    let server = launch_with_umask_0().stdio(&home);
    server.initialize().await;
    let started = server.request("thread/start", json!({ "cwd": home.work() })).await.unwrap();
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    let call = |id: &str| function_call("shell_command", json!({ "command": "umask" }), id);
    model.reply(call("c1")).reply(message("done"));
    server.start_turn(&thread, "go").await;
    let (id, params) = server.server_request("item/commandExecution/requestApproval").await;
    let amendment = &params["proposedExecpolicyAmendment"];
    let decision = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": amendment } });
    server.respond(&id, json!({ "decision": decision })).await;
    server.turn_completed(&thread).await;
    let kept = home.path().join("shell_snapshots");
    until("snapshot of the shell", async || fs::read_dir(&kept).is_ok_and(|mut kept| kept.next().is_some())).await;
    server.request("thread/name/set", json!({ "threadId": thread, "name": "a name" })).await.unwrap();
    let kept = ["sessions/", ".jsonl", "loomd.sqlite", "leases/", "shell_snapshots/", "session_index", "rules/"];
    assert_has(&private(&home, &before), &kept);
    server.request("thread/archive", json!({ "threadId": thread })).await.unwrap();
    assert_has(&private(&home, &before), &["archived_sessions/"]);
    let items = server.notifications("item/completed");
    let command = items.iter().map(|params| &params["item"]).find(|item| item["type"] == "commandExecution").unwrap();
    assert_eq!(command["aggregatedOutput"], "0000\n", "commands keep the umask of the user");
}

#[tokio::test]
async fn configuration_credentials_and_sockets_are_private() {
    let home = Home::empty();
    let before = everything_in(&home.path());
    let server = launch_with_umask_0().listen(&home, &format!("unix://{}/deep/socket", home.path().display())).await;
    let client = server.connect().await;
    client.initialize().await;
    let edit = json!({ "keyPath": "model", "value": "m", "mergeStrategy": "replace" });
    client.request("config/value/write", edit).await.unwrap();
    let key = json!({ "type": "apiKey", "apiKey": "sk-test" });
    client.request("account/login/start", key).await.unwrap();
    let report = json!({ "classification": "bug", "includeLogs": false });
    client.request("feedback/upload", report).await.unwrap();
    let names = private(&home, &before);
    assert_has(&names, &["config.toml", "auth.json", "deep/socket", "loomd/config.lock", "loomd/feedback/"]);
}

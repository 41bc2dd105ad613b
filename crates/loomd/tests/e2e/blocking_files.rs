//! A sandboxed command may replace any file of its workspace by a FIFO. The server must not block when it reads such
//! a file.

use std::path::Path;

use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::common::{initialized, ping};

/// More threads than the server has workers.
const THREADS: usize = 8;

/// Files that are read at the start of a thread or a turn.
const FILES: &[&str] = &[
    ".git",
    ".git/commondir",
    ".git/HEAD",
    ".git/config",
    ".git/refs/heads/main",
    ".git/packed-refs",
    ".gitignore",
    ".ignore",
    "AGENTS.md",
    "AGENTS.override.md",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/rules/x.rules",
    ".claude/settings.json",
    "CLAUDE.md",
    "image.png",
];

fn mkfifo(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Starts threads; returns the ids of those that were answered.
async fn start(server: &Server, cwd: &Path) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..THREADS {
        ids.push(server.send_request("thread/start", json!({ "cwd": cwd })).await);
    }
    let mut threads = Vec::new();
    for id in ids {
        if let Ok(started) = server.response(&id).await {
            threads.push(started["thread"]["id"].as_str().unwrap().to_owned());
        }
    }
    threads
}

async fn check(server: &Server, cwd: &Path, trusted: bool) {
    let threads = start(server, cwd).await;
    let is_broken = trusted && cwd.join(".codex/config.toml").exists();
    assert_eq!(threads.len(), if is_broken { 0 } else { THREADS }, "{}", cwd.display());
    let image = json!([{ "type": "text", "text": "hi" }, { "type": "localImage", "path": cwd.join("image.png") }]);
    let mut turns = Vec::new();
    for thread in &threads {
        turns.push(server.send_request("turn/start", json!({ "threadId": thread, "input": image })).await);
    }
    for turn in turns {
        server.response(&turn).await.expect("a turn begins");
    }
    for _ in &threads {
        server.notification("turn/completed").await;
    }
    let others = [
        ("config/read", json!({ "cwd": cwd })),
        ("fuzzyFileSearch", json!({ "query": "x", "roots": [cwd] })),
        ("externalAgentConfig/detect", json!({ "cwds": [cwd] })),
    ];
    for (method, params) in others {
        // Any response, also an error.
        _ = server.request(method, params).await;
    }
    ping(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifo_in_place_of_a_workspace_file_does_not_block_the_server() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let mut trust = String::new();
    for trusted in [false, true] {
        for (number, name) in FILES.iter().enumerate() {
            let folder = home.work().join(format!("{trusted}-{number}"));
            mkfifo(&folder.join(name));
            if name.starts_with(".git/") && !name.ends_with("HEAD") {
                std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            }
            if trusted {
                trust.push_str(&format!("[projects.'{}']\ntrust_level = 'trusted'\n", folder.display()));
            }
        }
    }
    let home = home.with(&trust);
    let server = initialized(&home).await;
    for trusted in [false, true] {
        for number in 0..FILES.len() {
            check(&server, &home.work().join(format!("{trusted}-{number}")), trusted).await;
        }
    }
    // The git program blocks on a FIFO, until its timeout.
    let mut diffs = Vec::new();
    for number in 0..FILES.len() {
        let cwd = home.work().join(format!("true-{number}"));
        diffs.push(server.send_request("gitDiffToRemote", json!({ "cwd": cwd })).await);
    }
    ping(&server).await;
    for diff in diffs {
        server.response(&diff).await.expect_err("there is no remote");
    }
}

#[tokio::test]
async fn a_project_file_that_is_not_a_regular_file_is_named_in_the_error() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let folder = home.work().join("w");
    mkfifo(&folder.join(".codex/config.toml"));
    let trust = format!("[projects.'{}']\ntrust_level = 'trusted'\n", folder.display());
    let home = home.with(&trust);
    let server = initialized(&home).await;
    let error = server.request("thread/start", json!({ "cwd": folder })).await.unwrap_err();
    let file = folder.join(".codex/config.toml").display().to_string();
    assert!(error.message.contains(&file) && error.message.contains("is not a regular file"), "{}", error.message);
}

/// A sandboxed command above can write `sub/.codex/config.toml`, which must not widen the sandbox of the next thread.
#[tokio::test]
async fn configuration_below_the_root_of_a_trusted_project_does_not_widen_the_sandbox() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let folder = home.work().join("w");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".git/HEAD", "ref: refs/heads/main\n");
    let widened = "model = 'sub'\nsandbox_mode = 'danger-full-access'\napproval_policy = 'never'\n";
    write("sub/.codex/config.toml", widened);
    let home = home.with(&format!("[projects.'{}']\ntrust_level = 'trusted'\n", folder.display()));
    let server = initialized(&home).await;
    let started = server.request("thread/start", json!({ "cwd": folder.join("sub") })).await.unwrap();
    assert_eq!(started["model"], "sub", "a preference counts");
    assert_ne!(started["sandbox"]["type"], "dangerFullAccess");
    let read =
        server.request("config/read", json!({ "cwd": folder.join("sub"), "includeLayers": true })).await.unwrap();
    let disabled: Vec<&Value> =
        read["layers"].as_array().unwrap().iter().filter(|layer| layer.get("disabledReason").is_some()).collect();
    assert_eq!(disabled.len(), 1);
    assert_eq!(disabled[0]["config"], json!({ "sandbox_mode": "danger-full-access", "approval_policy": "never" }));
    let reason = disabled[0]["disabledReason"].as_str().unwrap();
    assert!(reason.contains(folder.join("sub").to_str().unwrap()), "{reason}");

    // The root's own file applies in full: sandboxes protect it.
    write(".codex/config.toml", widened);
    let started = server.request("thread/start", json!({ "cwd": folder })).await.unwrap();
    assert_eq!(started["sandbox"]["type"], "dangerFullAccess");
}

//! Symbolic links and start-up files written by a command: an approval covers the file that was shown, and no such
//! file runs outside of the sandbox.

use std::fs;
use std::os::unix::fs::symlink;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::json;

use crate::common::{initialized, launch, until};

const APPROVAL: &str = "item/fileChange/requestApproval";

/// Only the working directory is writable.
const WORKSPACE_ONLY: &str = "
    approval_policy = \"on-request\"
    sandbox_mode = \"workspace-write\"
    sandbox_workspace_write.exclude_slash_tmp = true
    sandbox_workspace_write.exclude_tmpdir_env_var = true
";

async fn started(server: &Server, cwd: &std::path::Path) -> String {
    let started = server.request("thread/start", json!({ "cwd": cwd })).await.unwrap();
    started["thread"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_approval_of_a_patch_ends_when_the_path_resolves_to_another_file() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(WORKSPACE_ONLY);
    let [one, two] = ["one", "two"].map(|name| home.user().join(name));
    let link = home.work().join("link");
    fs::write(&one, "0\n").unwrap();
    fs::write(&two, "2\n").unwrap();
    symlink(&one, &link).unwrap();
    let server = initialized(&home).await;
    let thread = started(&server, &home.work()).await;
    let begin = async |from: u8, to: u8| {
        let patch = format!("*** Begin Patch\n*** Update File: link\n-{from}\n+{to}\n*** End Patch");
        let arguments = json!({ "command": format!("apply_patch <<'EOF'\n{patch}\nEOF") });
        model.reply(function_call("shell_command", arguments, "c")).reply(message("done"));
        server.start_turn(&thread, "go").await;
    };
    begin(0, 1).await;
    let (id, params) = server.server_request(APPROVAL).await;
    let reason = format!("links are followed: {} is {}", link.display(), one.display());
    assert_eq!(params["reason"], reason.as_str());
    server.respond(&id, json!({ "decision": "acceptForSession" })).await;
    server.turn_completed(&thread).await;
    server.clear();
    begin(1, 2).await;
    server.turn_completed(&thread).await;
    assert_eq!(fs::read(&one).unwrap(), b"2\n", "the same file needs no further approval");
    server.clear();
    fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    begin(2, 3).await;
    let (id, _) = server.server_request(APPROVAL).await;
    server.respond(&id, json!({ "decision": "decline" })).await;
    server.turn_completed(&thread).await;
    assert_eq!([&one, &two].map(|path| fs::read(path).unwrap()), [b"2\n".to_vec(), b"2\n".to_vec()]);
}

#[tokio::test]
async fn a_start_up_file_written_by_a_command_runs_only_in_the_sandbox() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(WORKSPACE_ONLY);
    let escaped = home.path().join("escaped");
    let planted = format!("touch {}; export FROM_RC=yes SERVER_SECRET=rc", escaped.display());
    fs::write(home.user().join(".bashrc"), planted).unwrap();
    fs::create_dir(home.user().join("sub")).unwrap();
    let home = home.with("shell_environment_policy.exclude = [\"*_SECRET\"]");
    let server = launch().env("SERVER_SECRET", "s").env("SHELL", "/bin/bash").stdio(&home);
    server.initialize().await;
    let thread = started(&server, &home.user()).await;
    let kept = home.path().join("shell_snapshots");
    for workdir in [".", "sub"] {
        let run = async || {
            server.clear();
            let arguments = json!({ "command": "echo \"$FROM_RC|$SERVER_SECRET|\"", "workdir": workdir });
            model.reply(function_call("shell_command", arguments, "c")).reply(message("done"));
            server.run_turn(&thread, "go").await;
            let items = server.notifications("item/completed");
            let item = items.iter().map(|params| &params["item"]).find(|item| item["type"] == "commandExecution");
            item.unwrap()["aggregatedOutput"].clone()
        };
        run().await;
        until("snapshot of the shell", async || fs::read_dir(&kept).is_ok_and(|mut kept| kept.next().is_some())).await;
        until("command that uses the snapshot", async || run().await == "yes||\n").await;
        assert!(!escaped.exists(), "the start-up file ran outside of the sandbox in {workdir}");
    }
}

//! Which commands need approval and which run outside of the sandbox, as a client sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use loomd_protocol::InitializeCapabilities;
use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::common::launch;

const APPROVAL: &str = "item/commandExecution/requestApproval";

struct ApprovalFixture {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
}

/// The outcome of a command: the params of the approval request, if there was one, and the item.
struct Outcome {
    approval: Option<Value>,
    item: Value,
}

impl ApprovalFixture {
    async fn new(approval: &str, sandbox: &str, more: &str, rules: &str) -> Self {
        let model = ScriptedModel::start().await;
        let config = format!("features.shell_snapshot = false\n{more}");
        let home = Home::new(&model).with(&config);
        home.write("rules/default.rules", rules);
        let server = launch().stdio(&home);
        server.initialize_with(experimental()).await;
        let params = json!({ "cwd": home.work(), "approvalPolicy": approval, "sandbox": sandbox });
        let started = server.request("thread/start", params).await.expect("a thread can be started");
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        Self { home, model, server, thread }
    }

    /// Lets the model run a command, and answers an approval request with this decision.
    async fn run(&self, tool: &str, arguments: Value, decision: &str) -> Outcome {
        self.server.clear();
        self.model.reply(function_call(tool, arguments, "c1")).reply(message("done"));
        self.server.start_turn(&self.thread, "go").await;
        let approval = tokio::select! {
            (id, params) = self.server.server_request(APPROVAL) => {
                self.server.respond(&id, json!({ "decision": decision })).await;
                self.server.notification("turn/completed").await;
                Some(params)
            }
            _ = self.server.notification("turn/completed") => None,
        };
        let items = self.server.notifications("item/completed");
        let item = items.iter().map(|params| &params["item"]).find(|item| item["type"] == "commandExecution");
        Outcome { approval, item: item.cloned().unwrap_or_default() }
    }

    async fn shell(&self, command: &[&str]) -> Outcome {
        self.run("shell", json!({ "command": command }), "decline").await
    }
}

fn experimental() -> InitializeCapabilities {
    InitializeCapabilities { experimental_api: true, ..Default::default() }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn additional_permissions_need_approval_even_for_a_known_safe_command() {
    let fixture =
        ApprovalFixture::new("on-request", "read-only", "features.exec_permission_approvals = true\n", "").await;
    let arguments = json!({
        "cmd": "ls", "sandbox_permissions": "with_additional_permissions",
        "additional_permissions": { "file_system": { "write": [fixture.home.path()] } },
    });
    let outcome = fixture.run("exec_command", arguments.clone(), "decline").await;
    let approval = outcome.approval.expect("the permissions are asked about");
    assert_eq!(approval["additionalPermissions"]["fileSystem"]["write"], json!([fixture.home.path()]));
    assert_eq!(approval["availableDecisions"], json!(["accept", "cancel"]));
    assert_eq!(outcome.item["status"], "declined");
    let outcome = fixture.run("exec_command", arguments.clone(), "acceptForSession").await;
    assert!(outcome.approval.is_some() && outcome.item["status"] == "completed", "{}", outcome.item);
    // They were granted to this command for the session.
    assert!(fixture.run("exec_command", arguments.clone(), "decline").await.approval.is_none());
    let mut other = arguments;
    other["cmd"] = json!("ls -a");
    assert!(fixture.run("exec_command", other, "decline").await.approval.is_some());
}

#[tokio::test]
async fn only_clients_of_the_experimental_interface_are_sent_experimental_fields() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("features.shell_snapshot = false\nfeatures.exec_permission_approvals = true\n");
    let server = launch().websocket(&home).await;
    let (one, other) = (server.connect().await, server.connect().await);
    one.initialize().await;
    other.initialize_with(InitializeCapabilities::default()).await;
    let params = json!({ "cwd": home.work(), "approvalPolicy": "on-request", "sandbox": "read-only" });
    let started = one.request("thread/start", params).await.expect("a thread can be started");
    let thread = started["thread"]["id"].as_str().unwrap();
    model.reply(message("stored"));
    one.run_turn(thread, "hi").await;
    other.request("thread/resume", json!({ "threadId": thread })).await.expect("it can be joined");
    let arguments = json!({
        "cmd": "ls", "sandbox_permissions": "with_additional_permissions",
        "additional_permissions": { "file_system": { "write": [home.path()] } },
    });
    model.reply(function_call("exec_command", arguments, "c1")).reply(message("done"));
    one.start_turn(thread, "go").await;
    let ((id, mut full), (other_id, stable)) =
        tokio::join!(one.server_request(APPROVAL), other.server_request(APPROVAL));
    assert_eq!(id, other_id);
    let permissions = full.as_object_mut().unwrap().remove("additionalPermissions");
    assert_eq!(permissions.unwrap()["fileSystem"]["write"], json!([home.path()]));
    assert_eq!(full, stable);
    // It can decide without them.
    other.respond(&id, json!({ "decision": "accept" })).await;
    one.turn_completed(thread).await;
}

#[tokio::test]
async fn a_shell_in_the_workspace_does_not_make_a_script_known_safe() {
    let fixture = ApprovalFixture::new("untrusted", "read-only", "", "").await;
    let shell = fixture.home.work().join("bash");
    write_program(&shell, "echo evil");
    let outcome = fixture.run("exec_command", json!({ "cmd": "ls", "shell": shell, "login": false }), "decline").await;
    assert!(outcome.approval.is_some() && outcome.item["status"] == "declined", "{}", outcome.item);
    assert!(fixture.shell(&["./bash", "-c", "ls"]).await.approval.is_some());
    let outcome =
        fixture.run("exec_command", json!({ "cmd": "ls", "shell": "/bin/sh", "login": false }), "decline").await;
    assert!(outcome.approval.is_none() && outcome.item["status"] == "completed", "{}", outcome.item);
}

#[tokio::test]
async fn a_rule_for_a_name_does_not_exempt_a_program_in_the_workspace_from_the_sandbox() {
    let rules = "prefix_rule(['mytool', 'status'])\nprefix_rule(['touch'])\n";
    let fixture = ApprovalFixture::new("on-request", "read-only", "", rules).await;
    let (tool, mark) = (fixture.home.work().join("mytool"), fixture.home.path().join("mark"));
    write_program(&tool, &format!("touch {}", mark.display()));
    let tool = tool.to_str().unwrap();
    let script = format!("{tool} status");
    for command in
        [&[tool, "status"][..], &["./mytool", "status"], &["bash", "-c", &script], &["bash", "-c", "./mytool status"]]
    {
        let outcome = fixture.shell(command).await;
        assert!(
            outcome.approval.is_none() && outcome.item["status"] == "failed" && !mark.exists(),
            "{command:?}: {}",
            outcome.item
        );
    }
    // A rule exempts its own program.
    let outcome = fixture.shell(&["bash", "-c", &format!("touch {}", mark.display())]).await;
    assert!(outcome.item["status"] == "completed" && mark.exists(), "{}", outcome.item);
}

#[tokio::test]
async fn git_without_approval_runs_no_program_named_by_the_repository() {
    let fixture = ApprovalFixture::new("untrusted", "danger-full-access", "", "").await;
    let (program, mark) = (fixture.home.path().join("evil"), fixture.home.path().join("mark"));
    write_program(&program, &format!("touch {}", mark.display()));
    let git = |words: &[&str]| {
        let status = Command::new("git").args(words).current_dir(fixture.home.work()).status().unwrap();
        assert!(status.success(), "git {words:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.fsmonitor", program.to_str().unwrap()]);
    for command in [&["git", "status"][..], &["bash", "-lc", "git status"]] {
        let outcome = fixture.shell(command).await;
        assert!(
            outcome.approval.is_none() && outcome.item["status"] == "completed" && !mark.exists(),
            "{}",
            outcome.item
        );
    }
    git(&["config", "filter.x.clean", program.to_str().unwrap()]);
    assert!(fixture.shell(&["git", "status"]).await.approval.is_some());
}

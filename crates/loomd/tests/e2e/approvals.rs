//! What is asked about, and what leaves the sandbox, as a client sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};

use crate::common::initialized;

const ASK: &str = "item/commandExecution/requestApproval";

struct World {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
}

/// What a command came to: the params of the approval request, if there was one, and the item.
struct Outcome {
    asked: Option<Value>,
    item: Value,
}

impl World {
    async fn new(approval: &str, sandbox: &str, more: &str, rules: &str) -> Self {
        let model = ScriptedModel::start().await;
        let config = format!("features.shell_snapshot = false\n{more}");
        let home = Home::new(&model).with(&config);
        home.write("rules/default.rules", rules);
        let server = initialized(&home).await;
        let params = json!({ "cwd": home.work(), "approvalPolicy": approval, "sandbox": sandbox });
        let started = server.request("thread/start", params).await.expect("a thread can be started");
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        Self { home, model, server, thread }
    }

    /// Lets the model run a command, and gives this decision if there is a question.
    async fn run(&self, tool: &str, arguments: Value, decision: &str) -> Outcome {
        self.server.forget();
        self.model.reply(function_call(tool, arguments, "c1")).reply(message("done"));
        self.server.start_turn(&self.thread, "go").await;
        let asked = tokio::select! {
            (id, params) = self.server.server_request(ASK) => {
                self.server.respond(&id, json!({ "decision": decision })).await;
                self.server.notification("turn/completed").await;
                Some(params)
            }
            _ = self.server.notification("turn/completed") => None,
        };
        let items = self.server.notifications("item/completed");
        let item = items.iter().map(|params| &params["item"]).find(|item| item["type"] == "commandExecution");
        Outcome { asked, item: item.cloned().unwrap_or_default() }
    }

    async fn shell(&self, command: &[&str]) -> Outcome {
        self.run("shell", json!({ "command": command }), "decline").await
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn extra_permissions_are_asked_about_even_for_a_known_safe_command() {
    let world = World::new("on-request", "read-only", "features.exec_permission_approvals = true\n", "").await;
    let arguments = json!({
        "cmd": "ls", "sandbox_permissions": "with_additional_permissions",
        "additional_permissions": { "file_system": { "write": [world.home.path()] } },
    });
    let outcome = world.run("exec_command", arguments.clone(), "decline").await;
    let asked = outcome.asked.expect("the permissions are asked about");
    assert_eq!(asked["additionalPermissions"]["fileSystem"]["write"], json!([world.home.path()]));
    assert_eq!(asked["availableDecisions"], json!(["accept", "cancel"]));
    assert_eq!(outcome.item["status"], "declined");
    let outcome = world.run("exec_command", arguments.clone(), "acceptForSession").await;
    assert!(outcome.asked.is_some() && outcome.item["status"] == "completed", "{}", outcome.item);
    // They were granted for the session, to this command.
    assert!(world.run("exec_command", arguments.clone(), "decline").await.asked.is_none());
    let mut other = arguments;
    other["cmd"] = json!("ls -a");
    assert!(world.run("exec_command", other, "decline").await.asked.is_some());
}

#[tokio::test]
async fn a_shell_in_the_workspace_does_not_make_a_script_known_safe() {
    let world = World::new("untrusted", "read-only", "", "").await;
    let shell = world.home.work().join("bash");
    write_program(&shell, "echo evil");
    let outcome = world.run("exec_command", json!({ "cmd": "ls", "shell": shell, "login": false }), "decline").await;
    assert!(outcome.asked.is_some() && outcome.item["status"] == "declined", "{}", outcome.item);
    assert!(world.shell(&["./bash", "-c", "ls"]).await.asked.is_some());
    let outcome =
        world.run("exec_command", json!({ "cmd": "ls", "shell": "/bin/sh", "login": false }), "decline").await;
    assert!(outcome.asked.is_none() && outcome.item["status"] == "completed", "{}", outcome.item);
}

#[tokio::test]
async fn a_rule_about_a_name_does_not_take_a_program_of_the_workspace_out_of_the_sandbox() {
    let rules = "prefix_rule(['mytool', 'status'])\nprefix_rule(['touch'])\n";
    let world = World::new("on-request", "read-only", "", rules).await;
    let (tool, mark) = (world.home.work().join("mytool"), world.home.path().join("mark"));
    write_program(&tool, &format!("touch {}", mark.display()));
    let tool = tool.to_str().unwrap();
    let script = format!("{tool} status");
    for command in
        [&[tool, "status"][..], &["./mytool", "status"], &["bash", "-c", &script], &["bash", "-c", "./mytool status"]]
    {
        let outcome = world.shell(command).await;
        assert!(
            outcome.asked.is_none() && outcome.item["status"] == "failed" && !mark.exists(),
            "{command:?}: {}",
            outcome.item
        );
    }
    // A rule frees what it is about.
    let outcome = world.shell(&["bash", "-c", &format!("touch {}", mark.display())]).await;
    assert!(outcome.item["status"] == "completed" && mark.exists(), "{}", outcome.item);
}

#[tokio::test]
async fn git_that_runs_unasked_starts_nothing_that_the_repository_names() {
    let world = World::new("untrusted", "danger-full-access", "", "").await;
    let (program, mark) = (world.home.path().join("evil"), world.home.path().join("mark"));
    write_program(&program, &format!("touch {}", mark.display()));
    let git = |words: &[&str]| {
        let status = Command::new("git").args(words).current_dir(world.home.work()).status().unwrap();
        assert!(status.success(), "git {words:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.fsmonitor", program.to_str().unwrap()]);
    for command in [&["git", "status"][..], &["bash", "-lc", "git status"]] {
        let outcome = world.shell(command).await;
        assert!(outcome.asked.is_none() && outcome.item["status"] == "completed" && !mark.exists(), "{}", outcome.item);
    }
    git(&["config", "filter.x.clean", program.to_str().unwrap()]);
    assert!(world.shell(&["git", "status"]).await.asked.is_some());
}

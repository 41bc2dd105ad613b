//! Published clients of newer servers, each as its users have it, with this program as the server. They are installed in
//! `target/clients` (CONTRIBUTING.md says how); a test whose client is missing is skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use loomd_testkit::model::{Reply, function_call, message, streamed};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::common::LOOMD;

/// Longer than the scripts wait for anything.
const LIMIT: Duration = Duration::from_secs(400);

/// An installed part of `target/clients`, or `None` with a line on stderr.
fn installed(part: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("clients").join(part);
    if !path.exists() {
        eprintln!("skipped: no client at {}", path.display());
        return None;
    }
    Some(path)
}

/// Whether a program is there, or a line on stderr.
fn is_there(program: &str, argument: &str) -> bool {
    let status = std::process::Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("skipped: no {program}");
    }
    is_there
}

/// Runs a script of this folder with its arguments and those that all scripts have. Returns what it reports.
async fn run(interpreter: &Path, script: &str, arguments: &[&Path], home: &Home) -> Value {
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/clients").join(script)).args(arguments);
    command.arg(LOOMD).arg(home.path()).arg(home.user()).arg(home.work()).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(LIMIT, command.output()).await.expect("the script ends").unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
    // Clients may log to stdout, too.
    let mut lines = output.stdout.rsplit(|byte| *byte == b'\n');
    let report = lines.find_map(|line| serde_json::from_slice(line).ok().filter(Value::is_object));
    report.unwrap_or_else(|| panic!("no report: {}\n{stderr}", String::from_utf8_lossy(&output.stdout)))
}

/// A call of a command that needs an approval.
fn ask(command: &str) -> Reply {
    let arguments = json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" });
    function_call("exec_command", arguments, "call-1")
}

/// A home where the model asks for what it needs.
fn home(model: &ScriptedModel) -> Home {
    Home::new(model).with("approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"")
}

#[tokio::test]
async fn the_official_python_sdk_has_its_newer_options() {
    let Some(python) = installed("venv/bin/python") else { return };
    let model = ScriptedModel::start().await;
    model
        .reply(function_call("exec_command", json!({ "cmd": "echo hi" }), "call-1"))
        .reply(message("one"))
        .reply(message(r#"{"n":2}"#))
        .reply(streamed(&["th", "ree"]))
        .reply(message("four"))
        .reply(message("five"))
        .reply(message("six"))
        .reply(message("summary"));
    let told = run(&python, "python_sdk.py", &[], &home(&model)).await;
    assert!(told["version"].as_str().unwrap().starts_with("0.166.0"), "{told}");
    let expected = json!({
        "version": told["version"],
        "models": told["models"],
        "account": null,
        "first": ["one", "completed", true],
        "items": ["userMessage", "commandExecution", "agentMessage"],
        "structured": { "n": 2 },
        "streamed": [
            "item/agentMessage/delta", "item/completed", "item/started", "thread/tokenUsage/updated", "turn/completed",
            "turn/started",
        ],
        "name": "A name",
        "turns": 3,
        "resumed": "four",
        "fork": [true, "five"],
        "listed": [true],
        "external": "six",
        "archived": 1,
        "unarchived": true,
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_editor_works_through_codex_acp() {
    let Some(modules) = installed("node_modules").filter(|_| is_there("node", "--version")) else { return };
    let model = ScriptedModel::start().await;
    // It calls the model once more after the first turn, for a title.
    model.reply(ask("touch asked")).reply(message("one")).reply(message("two")).reply(message("two"));
    let home = home(&model);
    let told = run(Path::new("node"), "acp.mjs", &[&modules], &home).await;
    assert!(home.work().join("asked").exists());
    let answer = told["answer"].as_str().unwrap();
    let second = told["second"][1].as_str().unwrap();
    assert!(answer.ends_with("one") && second.ends_with("two"), "{told}");
    let expected = json!({
        "loads": true,
        "modes": ["read-only", "workspace-write", "agent", "agent-full-access"],
        "first": "end_turn",
        "answer": answer,
        "asked": 1,
        "tools": ["execute"],
        "second": ["end_turn", second],
        "loaded": ["firstsecond", "onetwo"],
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_provider_of_the_ai_sdk_accepts_the_version() {
    let Some(modules) = installed("node_modules").filter(|_| is_there("node", "--version")) else { return };
    let model = ScriptedModel::start().await;
    model.reply(ask("touch asked")).reply(message("one")).reply(streamed(&["tw", "o"])).reply(message(r#"{"n":3}"#));
    let home = home(&model);
    let told = run(Path::new("node"), "ai_sdk.mjs", &[&modules], &home).await;
    assert!(home.work().join("asked").exists());
    let expected = json!({
        "models": told["models"],
        "first": "one",
        "second": "two",
        "finish": "finish",
        "sameThread": true,
        "third": { "n": 3 },
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_terminal_program_of_the_reference_works_remotely() {
    let Some(python) = installed("venv/bin/python") else { return };
    let Some(terminal) = installed("codex").filter(|_| is_there("tmux", "-V")) else { return };
    let model = ScriptedModel::start().await;
    let mut told = run(&python, "terminal.py", &[&terminal], &Home::new(&model)).await;
    // The reference answers these with an error, too.
    let errors = told["errors"].as_array_mut().unwrap();
    errors.retain(|error| error[0] != "thread/turns/list");
    assert!(told["goals"].as_u64().unwrap() > 0, "{told}");
    let expected = json!({
        "errors": [],
        "goals": told["goals"],
        "approved": true,
        "patched": "new\n",
        "interrupted": true,
        "queued": true,
        "resumed": true,
    });
    assert_eq!(told, expected);
}

/// `happy` and others look for this line.
#[test]
fn under_the_name_of_the_reference_the_version_is_the_level() {
    let dir = tempfile::tempdir().unwrap();
    let codex = dir.path().join("codex");
    std::os::unix::fs::symlink(LOOMD, &codex).unwrap();
    let output = std::process::Command::new(codex).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "codex-cli 0.166.0\n");
}

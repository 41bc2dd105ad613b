//! The Python package `weakincentives`, unchanged, with this program as its app-server. Skipped unless it is installed:
//! `python3.12 -m venv target/wink && target/wink/bin/pip install weakincentives` (it needs Python 3.12 or newer).

use std::path::{Path, PathBuf};
use std::process::Stdio;

use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{error, function_call, message, shell};
use serde_json::{Value, json};
use tokio::process::Command;

use super::home;
use crate::common::{LOOMD, in_time};

/// A Python with the package, or `None` with a line on stderr.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("wink/bin/python");
    let import = ["-c", "import weakincentives"];
    let found = std::process::Command::new(&python).args(import).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: weakincentives is not installed for {}", python.display());
        return None;
    }
    Some(python)
}

#[tokio::test]
async fn weakincentives_evaluates_prompts() {
    let Some(python) = python() else { return };
    let model = ScriptedModel::start().await;
    model
        .reply(message("one"))
        .reply(message(r#"{"answer":42}"#))
        .reply(function_call("look", json!({ "name": "known" }), "call_known"))
        .reply(function_call("look", json!({ "name": "unknown" }), "call_unknown"))
        .reply(shell("echo hi"))
        .reply(message("three"))
        .reply(error(400, "bad", "no such thing"))
        .reply(message("four"));
    let home = home(&model).with("model_providers.scripted.requires_openai_auth = true");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/commands/wink.py");
    let mut command = Command::new(python);
    command.arg(script).arg(LOOMD).arg(home.path()).arg(home.user()).arg(home.work()).kill_on_drop(true);
    let output = in_time("the end of the script", command.output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();

    let events = ["PromptRendered", "PromptExecuted"];
    assert_eq!(told["text"], json!({ "text": "one", "output": null, "events": events, "tools": [] }));
    assert_eq!((&told["typed"]["output"], &told["typed"]["events"]), (&json!(42), &json!(events)));
    let schema = &model.call(1).await.body["text"]["format"]["schema"];
    assert_eq!(schema["required"], json!(["answer"]));

    let tools = &told["tools"];
    assert_eq!((&tools["text"], &tools["events"][3]), (&json!("three"), &json!("PromptExecuted")));
    // It publishes no event for a tool that raised.
    let invoked = json!([["look", true, "{\"number\": 42}"], ["codex:command", true, "hi\n"]]);
    assert_eq!(tools["tools"], invoked);
    let after_failure = model.call(4).await.body.to_string();
    assert!(after_failure.contains("nothing of this name"), "the model gets the tool's error: {after_failure}");
    assert_eq!(told["failed"]["phase"], "response");

    assert_eq!(told["signed in"]["text"], "four");
    let calls = model.calls();
    let sent = |header: &str| calls.last().and_then(|call| call.header(header).map(str::to_owned));
    let expected = (Some("Bearer access-1".to_owned()), Some("account-1".to_owned()));
    assert_eq!((sent("authorization"), sent("chatgpt-account-id")), expected);
}

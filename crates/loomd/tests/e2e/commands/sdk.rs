//! The TypeScript SDK with this program as its executable. Skipped if node or the SDK is not installed: `npm install
//! --prefix target/sdk --omit=optional @openai/codex-sdk`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{error, message, shell, streamed};
use serde_json::{Value, json};
use tokio::process::Command;

use super::home;
use crate::common::{LOOMD, in_time};

/// The SDK's entry point, or `None` with a line on stderr.
fn sdk() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let entry = target.join("sdk/node_modules/@openai/codex-sdk/dist/index.js");
    let node = std::process::Command::new("node").arg("--version").stdout(Stdio::null()).status();
    if !node.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no node");
        return None;
    }
    if !entry.exists() {
        eprintln!("skipped: no SDK at {}", entry.display());
        return None;
    }
    Some(entry)
}

#[tokio::test]
async fn the_sdk_runs_turns() {
    let Some(sdk) = sdk() else { return };
    let model = ScriptedModel::start().await;
    model
        .reply(shell("echo hi"))
        .reply(message("one"))
        .reply(streamed(&["tw", "o"]))
        .reply(message(r#"{"answer":42}"#))
        .reply(message("four"))
        .reply(error(400, "bad", "no such thing"));
    let home = home(&model);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/commands/sdk.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(sdk).arg(LOOMD).arg(home.path()).arg(home.user()).arg(home.work()).kill_on_drop(true);
    let output = in_time("the end of the script", command.output()).await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(told["turn"]["finalResponse"], "one");
    let kinds: Vec<_> = told["turn"]["items"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["command_execution", "agent_message"]);
    let command = &told["turn"]["items"][0];
    assert_eq!(
        (&command["aggregated_output"], &command["exit_code"], &command["status"]),
        (&json!("hi\n"), &json!(0), &json!("completed"))
    );
    assert_eq!(
        (&told["turn"]["usage"]["input_tokens"], &told["turn"]["usage"]["output_tokens"]),
        (&json!(20), &json!(10))
    );

    let streamed = ["thread.started", "turn.started", "item.completed", "turn.completed"];
    assert_eq!(told["streamed"], json!(streamed));
    assert_eq!(told["structured"], json!({ "answer": 42 }));
    let schema = &model.call(3).await.body["text"]["format"]["schema"];
    assert_eq!(schema["required"], json!(["answer"]));

    assert_eq!(told["resumed"], json!({ "finalResponse": "four", "sameThread": true }));
    let texts = model.call(4).await;
    assert!(texts.user_texts().ends_with(&["first", "second", "third", "fourth"]), "{:?}", texts.user_texts());
    assert!(told["failure"].as_str().unwrap().contains("no such thing"), "{told}");
}

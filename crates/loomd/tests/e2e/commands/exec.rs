//! `loomd exec`: the command line and events that the TypeScript SDK uses.

use std::process::Stdio;

use loomd_testkit::model::{error, message, shell};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{command, home};
use crate::common::{RunResult, in_time, output};

/// Runs `loomd exec` with this stdin.
async fn exec(home: &Home, args: &[&str], stdin: &str) -> RunResult {
    let mut command = command(home, &[&["exec"], args].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).await.unwrap();
    let output = in_time("the end of the program", child.wait_with_output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    RunResult { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn events(ended: &RunResult) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn usage(turns: i64) -> Value {
    json!({ "input_tokens": 10 * turns, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
        "output_tokens": 5 * turns, "reasoning_output_tokens": 0 })
}

#[tokio::test]
async fn a_thread_is_resumed_for_the_next_turn() {
    let model = ScriptedModel::start().await;
    model.reply(message("hello")).reply(message("again"));
    let home = home(&model);
    let ended = exec(&home, &["--experimental-json"], "hi").await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let first = events(&ended);
    let id = first[0]["thread_id"].as_str().expect("the first event names the thread").to_owned();
    let whole = |text: &str, turns| {
        vec![
            json!({ "type": "thread.started", "thread_id": id }),
            json!({ "type": "turn.started" }),
            json!({ "type": "item.completed", "item": { "id": "item_0", "type": "agent_message", "text": text } }),
            json!({ "type": "turn.completed", "usage": usage(turns) }),
        ]
    };
    assert_eq!(first, whole("hello", 1));
    let ended = exec(&home, &["--experimental-json", "resume", &id], "more").await;
    assert_eq!(events(&ended), whole("again", 2));
    assert!(model.call(1).await.user_texts().ends_with(&["hi", "more"]));
}

#[tokio::test]
async fn a_failed_turn_reports_the_error() {
    let model = ScriptedModel::start().await;
    model.reply(error(400, "bad", "no such thing"));
    let ended = exec(&home(&model), &["--experimental-json", "--skip-git-repo-check"], "hi").await;
    assert_eq!(ended.code, Some(1));
    let events = events(&ended);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thread.started", "turn.started", "error", "turn.failed"]);
    assert_eq!(events[2]["message"], events[3]["error"]["message"]);
    assert!(events[3]["error"]["message"].as_str().unwrap().contains("no such thing"), "{events:?}");
}

#[tokio::test]
async fn a_review_prints_its_findings() {
    let found = json!({ "findings": [], "overall_correctness": "patch is correct", "overall_explanation": "All good.",
        "overall_confidence_score": 0.9 });
    for (args, asked) in [
        (&["--uncommitted"][..], "since its last commit"),
        (&["--commit", "abc123", "--title", "Fix it"], "commit abc123 (\"Fix it\")"),
        (&["look at the tests"], "look at the tests"),
        (&["-"], "from stdin"),
    ] {
        let model = ScriptedModel::start().await;
        model.reply(message(&found.to_string()));
        let ended = exec(&home(&model), &[&["--json", "review"], args].concat(), "from stdin").await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
        let item = json!({ "id": "item_0", "type": "agent_message", "text": "All good." });
        let expected = [
            json!({ "type": "turn.started" }),
            json!({ "type": "item.completed", "item": item }),
            json!({ "type": "turn.completed", "usage": usage(1) }),
        ];
        assert_eq!(events(&ended)[1..], expected, "{args:?}");
        let prompt = model.call(0).await;
        assert!(prompt.user_texts().last().unwrap().contains(asked), "{args:?}: {:?}", prompt.user_texts());
    }

    let model = ScriptedModel::start().await;
    model.reply(message(&found.to_string()));
    let ended = exec(&home(&model), &["review", "--uncommitted"], "").await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "All good.\n"));
    assert!(!ended.stderr.contains("All good."), "{}", ended.stderr);
    let ended = exec(&home(&model), &["review"], "").await;
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[tokio::test]
async fn approvals_are_off_unless_the_command_line_enables_them() {
    // The configured approval policy does not apply without a terminal.
    let model = ScriptedModel::start().await;
    model.reply(shell("touch made")).reply(message("done"));
    let home = home(&model).with(r#"approval_policy = "untrusted""#);
    let ended = exec(&home, &["--json"], "make it").await;
    assert_eq!((ended.code, home.work().join("made").exists()), (Some(0), true), "{}", ended.stderr);

    // The command line's does.
    model.reply(shell("touch refused")).reply(message("done"));
    let ended = exec(&home, &["--json", "--config", r#"approval_policy="untrusted""#], "make it").await;
    assert_eq!((ended.code, home.work().join("refused").exists()), (Some(3), false), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("refused: Run this command?"), "{}", ended.stderr);
}

#[tokio::test]
async fn the_api_key_of_the_sdk_is_used() {
    let model = ScriptedModel::start().await;
    model.reply(message("hello"));
    let home = Home::empty();
    let base_url = format!("openai_base_url={:?}", model.base_url());
    let mut command = command(&home, &["exec", "--experimental-json", "--config", &base_url, "hi"]);
    let ended = output(command.env("CODEX_API_KEY", "a-key")).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(model.call(0).await.header("authorization"), Some("Bearer a-key"));
}

#[tokio::test]
async fn stdin_is_appended_to_the_prompt() {
    let model = ScriptedModel::start().await;
    model.reply(message("done"));
    let home = home(&model);
    let file = home.work().join("last.txt");
    let ended = exec(&home, &["summarise", "-o", file.to_str().unwrap()], "a log\n").await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{}", ended.stderr);
    assert_eq!(model.call(0).await.user_texts().last(), Some(&"summarise\n\n<stdin>\na log\n</stdin>"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "done");
}

#[tokio::test]
async fn add_dir_makes_a_folder_writable() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let more = home.user().join("more");
    std::fs::create_dir(&more).unwrap();
    let more = more.to_str().unwrap();
    model.reply(shell(&format!("echo x > {more}/file"))).reply(message("done"));
    // The default folders for temporary files would make any test folder writable.
    let narrow =
        ["exclude_slash_tmp=true", "exclude_tmpdir_env_var=true"].map(|key| format!("sandbox_workspace_write.{key}"));
    let args = ["--json", "-s", "workspace-write", "--add-dir", more, "-c", &narrow[0], "-c", &narrow[1]];
    let ended = exec(&home, &args, "write").await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(std::path::Path::new(more).join("file").exists(), "{}", ended.stdout);
}

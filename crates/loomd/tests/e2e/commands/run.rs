//! `loomd run` in scripts: output, flags and exit status.

use std::process::Stdio;

use loomd_testkit::model::{error, function_call, message, shell, streamed};
use loomd_testkit::{Gate, Home, ScriptedModel, Signal};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{command, home};
use crate::common::{RunResult, in_time, output, send, until_caught};

async fn run(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, &[&["run"], args].concat())).await
}

#[tokio::test]
async fn the_last_message_goes_to_stdout_and_the_rest_to_stderr() {
    let model = ScriptedModel::start().await;
    let plan = json!({ "plan": [{ "step": "Look", "status": "completed" }] });
    model
        .reply(message("I will look.").then(function_call("update_plan", plan, "p")).then(shell("echo found")))
        .reply(streamed(&["That ", "is it."]));
    let ended = run(&home(&model), &["what is there?"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "That is it.\n"), "{}", ended.stderr);
    let told: Vec<_> = ended.stderr.lines().collect();
    for line in ["I will look.", "  ✔ Look", "$ echo found", "  │ found"] {
        assert!(told.contains(&line), "{line:?} is not in {told:#?}");
    }
    assert!(told.iter().any(|line| line.starts_with("tokens: ")), "{told:#?}");
    assert!(!ended.stderr.contains("That is it."), "{told:#?}");
    assert!(!ended.stderr.contains('\u{1b}'), "{told:#?}");
}

#[tokio::test]
async fn a_failed_turn_is_exit_status_1() {
    let model = ScriptedModel::start().await;
    model.reply(message("On it.").then(shell("true"))).reply(error(400, "bad", "no such thing"));
    let ended = run(&home(&model), &["go"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("On it.") && ended.stderr.contains("no such thing"), "{}", ended.stderr);
}

#[tokio::test]
async fn invalid_arguments_are_exit_status_2() {
    let home = Home::empty();
    let list = home.write("list.json", "[]");
    let text = home.write("text.json", "hello");
    for (args, words) in [
        (vec!["-"], "the prompt is empty"),
        (vec![], "the prompt is empty"),
        (vec![" "], "the prompt is empty"),
        (vec!["go", "--output-schema", "missing.json"], "missing.json: No such file"),
        (vec!["go", "--output-schema", list.to_str().unwrap()], "expected a JSON object"),
        (vec!["go", "--output-schema", text.to_str().unwrap()], "expected value"),
        (vec!["go", "--image", "missing.png"], "--image missing.png: No such file"),
        (vec!["go", "--image", text.to_str().unwrap()], "not an image: expected PNG, JPEG, GIF or WebP"),
        (vec!["go", "--image", "."], "--image .: it is a directory"),
        (vec!["go", "--attach", "localhost:1"], "expected `ws://HOST:PORT`"),
        (vec!["go", "--cd", "missing"], "missing: No such file"),
        (vec!["go", "--sandbox", "bogus"], "invalid value 'bogus'"),
        (vec!["go", "--ephemeral", "--resume", "last"], "cannot be used with"),
    ] {
        let ended = run(&home, &args).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn approvals_are_declined_without_a_terminal() {
    let model = ScriptedModel::start().await;
    model.reply(shell("touch made")).reply(message("It was not allowed."));
    let home = home(&model);
    let ended = run(&home, &["make it", "--ask", "untrusted"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), "It was not allowed.\n"), "{}", ended.stderr);
    let refusal = ended.stderr.lines().find(|line| line.starts_with("refused: Run this command? "));
    let refusal = refusal.unwrap_or_else(|| panic!("no refusal in {}", ended.stderr));
    assert!(
        refusal.contains("touch made") && refusal.ends_with("(no terminal for approval; see --ask and --sandbox)"),
        "{refusal}"
    );
    assert!(!home.work().join("made").exists());
}

#[tokio::test]
async fn a_question_declined_without_a_terminal_is_printed() {
    let model = ScriptedModel::start().await;
    let options = json!([{ "label": "red", "description": "" }]);
    let question = json!({ "id": "q", "header": "Colour", "question": "Which one?", "options": options });
    model.reply(function_call("request_user_input", json!({ "questions": [question] }), "ask")).reply(message("Well."));
    let home = home(&model).with("features.default_mode_request_user_input = true");
    let ended = run(&home, &["paint"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), "Well.\n"), "{}", ended.stderr);
    let told = "refused: Colour: Which one? (no terminal for approval)";
    assert!(ended.stderr.lines().any(|line| line == told), "{}", ended.stderr);
}

#[tokio::test]
async fn a_dash_reads_the_prompt_from_stdin() {
    for args in [vec!["run", "-"], vec!["run"]] {
        let model = ScriptedModel::start().await;
        model.reply(message("Read."));
        let home = home(&model);
        let mut command = command(&home, &args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"two\nlines\n").await.unwrap();
        let output = in_time("the end of the program", child.wait_with_output()).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Read.\n");
        assert_eq!(model.call(0).await.user_texts().last(), Some(&"two\nlines\n"));
    }
}

#[tokio::test]
async fn json_prints_notifications_as_received() {
    let model = ScriptedModel::start().await;
    model.reply(streamed(&["one ", "two"]));
    let ended = run(&home(&model), &["count", "--json"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<_> = lines.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods.first(), Some(&"thread/started"), "{methods:?}");
    assert_eq!(methods.last(), Some(&"turn/completed"), "{methods:?}");
    let pieces = lines.iter().filter(|line| line["method"] == "item/agentMessage/delta");
    let text: String = pieces.map(|line| line["params"]["delta"].as_str().unwrap()).collect();
    assert_eq!(text, "one two");
    assert_eq!(lines.last().unwrap()["params"]["turn"]["status"], "completed");
}

#[tokio::test]
async fn flags_reach_the_model_call() {
    let model = ScriptedModel::start().await;
    model.reply(message(r#"{"answer":42}"#));
    let home = home(&model);
    let schema = json!({ "type": "object", "properties": { "answer": { "type": "number" } },
        "required": ["answer"], "additionalProperties": false });
    let file = home.write("schema.json", &schema.to_string());
    let image = home.work().join("dot.png");
    std::fs::write(&image, DOT).unwrap();
    std::fs::create_dir(home.work().join("sub")).unwrap();
    let (file, image) = (file.to_str().unwrap(), image.to_str().unwrap());
    let args = ["look", "--model", "other-model", "--output-schema", file, "--image", image, "--cd", "sub"];
    let ended = run(&home, &args).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "{\"answer\":42}\n"), "{}", ended.stderr);
    let body = model.call(0).await.body;
    assert_eq!((&body["model"], &body["text"]["format"]["schema"]), (&json!("other-model"), &schema));
    let input = body["input"].to_string();
    assert!(input.contains("data:image/png;base64,"), "{input}");
    assert!(input.contains(&format!("<cwd>{}</cwd>", home.work().join("sub").display())), "{input}");
}

/// One pixel.
const DOT: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49,
    0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x48, 0xaf, 0xa4, 0x71, 0x00, 0x00,
    0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

#[tokio::test]
async fn resume_continues_a_thread() {
    let model = ScriptedModel::start().await;
    model.reply(message("First.")).reply(message("Second.")).reply(message("Third."));
    let home = home(&model);
    assert_eq!(run(&home, &["--resume", "last", "go on"]).await.code, Some(1), "there is none yet");
    assert_eq!(run(&home, &["begin"]).await.stdout, "First.\n");
    assert_eq!(run(&home, &["--resume", "last", "go on"]).await.stdout, "Second.\n");
    let second = model.call(1).await;
    assert!(second.user_texts().ends_with(&["begin", "go on"]), "{:?}", second.user_texts());
    let ended = output(&mut command(&home, &["threads", "list", "--json"])).await;
    let thread: Value = serde_json::from_str(ended.stdout.trim()).unwrap();
    // A prefix of its id.
    let id = &thread["id"].as_str().unwrap()[..18];
    assert_eq!(run(&home, &["--resume", id, "and on"]).await.stdout, "Third.\n");
    assert!(model.call(2).await.user_texts().ends_with(&["begin", "go on", "and on"]));
}

#[tokio::test]
async fn an_ephemeral_thread_is_not_stored() {
    let model = ScriptedModel::start().await;
    model.reply(message("Gone."));
    let home = home(&model);
    assert_eq!(run(&home, &["go", "--ephemeral"]).await.stdout, "Gone.\n");
    let ended = output(&mut command(&home, &["threads", "list", "--all", "--json"])).await;
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn a_signal_interrupts_the_turn() {
    for signal in [Signal::INT, Signal::TERM] {
        let (model, gate) = (ScriptedModel::start().await, Gate::new());
        model.reply(streamed(&["It will be long"]).wait(&gate));
        let home = home(&model);
        let mut command = command(&home, &["run", "take long", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        model.call(0).await;
        until_caught(child.id().unwrap(), signal).await;
        send(signal, &child);
        let output = in_time("the end of the program", child.wait_with_output()).await.unwrap();
        assert_eq!(output.status.code(), Some(3), "{signal:?}: {}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8_lossy(&output.stdout);
        let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        assert_eq!(last["params"]["turn"]["status"], "interrupted", "{signal:?}");
        gate.open();
    }
}

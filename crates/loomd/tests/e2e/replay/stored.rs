//! `loomd replay`: reports no difference for an unchanged thread, and finds changes.

use std::path::{Path, PathBuf};

use loomd_testkit::model::{Usage, added, completed, failed, function_call, message, shell, streamed, text_delta};
use loomd_testkit::{Gate, Home, Launch, ScriptedModel, Server, reference};
use serde_json::{Value, json};

use super::{answers, home};
use crate::common::{RunResult, initialized, launch, run};
use crate::interchange::{ended, started};

/// Replays a thread; returns its report and the result of the program.
async fn replay(home: &Home, thread: &str, more: &[&str]) -> (Value, RunResult) {
    let ended = run(home, &[&["replay", thread, "--json"], more].concat()).await;
    let report = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (report, ended)
}

async fn check_same(home: &Home, thread: &str, more: &[&str], replayed: usize) -> Value {
    let (report, ended) = replay(home, thread, more).await;
    assert_eq!(
        (&report["difference"], ended.code, &report["replayed"]),
        (&Value::Null, Some(0), &json!(replayed)),
        "{report:#}"
    );
    report
}

/// The rollout path of a thread that is not loaded.
async fn file(server: &Server, thread: &str) -> PathBuf {
    let read = server.request("thread/read", json!({ "threadId": thread })).await.expect("a thread");
    server.request("thread/unsubscribe", json!({ "threadId": thread })).await.expect("it can be left");
    read["thread"]["path"].as_str().expect("a path").into()
}

fn alter(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "nothing to alter: {from}");
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

#[tokio::test]
async fn fifty_turns_replay_without_difference_and_changes_are_found() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let recording = home.path().join("recording.jsonl");
    let server = launch().env("LOOMD_RECORD", &recording).stdio(&home);
    server.initialize().await;
    let thread = server.start_thread(Default::default()).await.id;
    for turn in 0..50 {
        answers(turn).into_iter().for_each(|answer| _ = model.reply(answer));
        server.run_turn(&thread, &format!("turn {turn}")).await;
    }
    let file = file(&server, &thread).await;
    let (before, calls) = (std::fs::read(&file).unwrap(), model.calls().len());
    let note = home.work().join("note-3.txt");
    std::fs::remove_file(&note).unwrap();

    check_same(&home, &thread, &[], 50).await;
    check_same(&home, &thread[..13], &["--recording", &recording.to_string_lossy()], 50).await;
    // The model was not called.
    assert_eq!((std::fs::read(&file).unwrap() == before, model.calls().len(), note.exists()), (true, calls, false));

    // A tool's output, in the item and in the history.
    let output = r#"Output:\n22\n"#;
    alter(&file, output, r#"Output:\n23\n"#);
    let (report, ended) = replay(&home, &thread, &[]).await;
    assert_eq!((ended.code, &report["difference"]["turn"]), (Some(1), &json!(23)), "{report:#}");
    assert!(report["difference"]["place"].as_str().unwrap().contains("call_22_shell_command"), "{report:#}");
    std::fs::write(&file, &before).unwrap();
    alter(&file, r#""aggregated_output":"22\n""#, r#""aggregated_output":"23\n""#);
    assert_eq!(replay(&home, &thread, &[]).await.0["difference"]["turn"], json!(23));

    // A message, in the item and in the history.
    for (from, to) in [
        (r#""message":"Several pieces, turn 30.""#, r#""message":"Several pieces, turn 31.""#),
        (r#""text":"Several pieces, turn 30.""#, r#""text":"Several pieces, turn 31.""#),
    ] {
        std::fs::write(&file, &before).unwrap();
        alter(&file, from, to);
        let (report, _) = replay(&home, &thread, &[]).await;
        assert_eq!(report["difference"]["turn"], json!(31), "{report:#}");
    }
    // The same change in both: only a recording shows it.
    std::fs::write(&file, &before).unwrap();
    let text = String::from_utf8(before.clone()).unwrap();
    std::fs::write(&file, text.replace("pieces, turn 30.", "pieces, turn 31.")).unwrap();
    check_same(&home, &thread, &[], 50).await;
    let (report, _) = replay(&home, &thread, &["--recording", &recording.to_string_lossy()]).await;
    assert_eq!(report["difference"]["turn"], json!(31), "{report:#}");

    // As text.
    std::fs::write(&file, &before).unwrap();
    alter(&file, output, r#"Output:\n23\n"#);
    let ended = run(&home, &["replay", &thread]).await;
    assert!(
        ended.stdout.starts_with("turn 23 differs in the call call_22_shell_command of shell_command"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn steers_interrupts_compactions_and_rollbacks_replay_without_difference() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let server = initialized(&home).await;
    let thread = server.start_thread(Default::default()).await.id;
    let params = json!({ "threadId": thread });

    // Steered before the first answer, and during a command.
    let gate = Gate::new();
    model
        .reply(message("First.").after(&gate))
        .reply(shell("until [ -e go ]; do sleep 0.01; done"))
        .reply(message("Third."));
    let turn = server.start_turn(&thread, "one").await.id;
    model.call(0).await;
    steer(&server, &thread, &turn, "rather two").await;
    gate.open();
    server.notification_where("item/started", |told| told["item"]["type"] == "commandExecution").await;
    steer(&server, &thread, &turn, "or three").await;
    std::fs::write(home.work().join("go"), "").unwrap();
    server.turn_completed(&thread).await;

    // Interrupted in a message, and in a command.
    let begun = || added(json!({ "type": "message", "role": "assistant", "id": "msg_i", "content": [] }));
    model.reply(begun().then(text_delta("So far")).wait(&Gate::new()));
    interrupted(&server, &thread, "item/agentMessage/delta").await;
    model.reply(message("I wait.").then(shell("sleep 30")));
    interrupted(&server, &thread, "item/started").await;

    // Compacted.
    model.reply(message("It was about numbers."));
    server.request("thread/compact/start", params.clone()).await.expect("a turn");
    server.turn_completed(&thread).await;
    model.reply(streamed(&["Go", " on."]));
    server.run_turn(&thread, "and?").await;

    // Rolled back, and continued otherwise.
    model.reply(message("Never mind."));
    server.run_turn(&thread, "forget this").await;
    server.request("thread/rollback", json!({ "threadId": thread, "numTurns": 1 })).await.expect("taken back");
    model.reply(message("Fine."));
    server.run_turn(&thread, "remember this").await;

    // A review is copied.
    server.request("thread/shellCommand", json!({ "threadId": thread, "command": "echo mine" })).await.expect("a turn");
    server.turn_completed(&thread).await;
    model.reply(message("{\"findings\":[],\"overall_explanation\":\"Fine.\"}"));
    let review = json!({ "threadId": thread, "target": { "type": "custom", "instructions": "look" } });
    server.request("review/start", review).await.expect("a review");
    server.turn_completed(&thread).await;

    // Another folder, with its instructions.
    model.reply(message("Moved."));
    let other = home.work().join("other");
    std::fs::create_dir(&other).unwrap();
    let input = json!([{ "type": "text", "text": "go there" }]);
    let start = json!({ "threadId": thread, "input": input, "cwd": other, "sandboxPolicy": { "type": "readOnly" } });
    server.request("turn/start", start).await.expect("a turn");
    server.turn_completed(&thread).await;

    let forked =
        server.request("thread/fork", params).await.expect("a fork")["thread"]["id"].as_str().unwrap().to_owned();
    model.reply(message("I am another."));
    server.run_turn(&forked, "who are you?").await;
    assert_eq!(model.unused(), 0);
    file(&server, &thread).await;
    file(&server, &forked).await;

    for (thread, replayed) in [(&thread, 8), (&forked, 9)] {
        let report = check_same(&home, thread, &[], replayed).await;
        let copied: Vec<_> = report["copied"].as_array().unwrap().iter().map(|copied| copied["turn"].clone()).collect();
        assert_eq!(copied, [8, 9], "{report:#}");
    }
}

/// Automatic compaction, a full context window, background terminals, dynamic tools, and partial text before a stream
/// that stays broken.
#[tokio::test]
async fn automatic_compaction_and_background_terminals_replay_without_difference() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    home.write(
        "config.toml",
        &format!("model_auto_compact_token_limit = 50000\n{config}\n[features]\nunified_exec = true\n"),
    );
    home.write("AGENTS.md", "Be brief.");
    let server = initialized(&home).await;
    let tool = json!({ "name": "weather", "description": "Tells it.", "inputSchema": { "type": "object" } });
    let started = server.request("thread/start", json!({ "dynamicTools": [tool] })).await.expect("a thread");
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    let took = |input: u64| completed(Usage { input, cached: 0, output: 5, reasoning: 0 });
    let call = |name: &str, arguments: Value, id: &str| function_call(name, arguments, id);

    // The window is full before the next turn, then in the middle of one.
    model.reply(message("A lot.").then(took(60_000)));
    server.run_turn(&thread, "one").await;
    model.reply(message("Summary one.")).reply(call("weather", json!({}), "c1").then(took(70_000)));
    model.reply(message("Summary two.")).reply(message("Sunny."));
    server.start_turn(&thread, "two").await;
    let (id, _) = server.server_request("item/tool/call").await;
    server.respond(&id, json!({ "contentItems": [{ "type": "inputText", "text": "sun" }], "success": true })).await;
    server.turn_completed(&thread).await;

    // A command that outlives its turn.
    model.reply(call(
        "exec_command",
        json!({ "cmd": "echo ready; read line; echo got $line", "tty": true, "login": false, "yield_time_ms": 250 }),
        "c2",
    ));
    model.reply(message("It runs."));
    server.run_turn(&thread, "three").await;
    let session: Value = model.calls().last().unwrap().tool_output("c2").unwrap().clone();
    let session =
        session.as_str().unwrap().split("session ID ").nth(1).expect("a session").lines().next().unwrap().to_owned();
    let session: u64 = session.parse().unwrap();
    model
        .reply(call("write_stdin", json!({ "session_id": session, "chars": "it\n" }), "c3"))
        .reply(message("It ended."));
    server.run_turn(&thread, "four").await;

    // The stream stays broken, and then the window is full.
    let begun = || added(json!({ "type": "message", "role": "assistant", "id": "msg_b", "content": [] }));
    (0..3).for_each(|try_| _ = model.reply(begun().then(text_delta(&format!("half {try_}"))).close()));
    server.run_turn(&thread, "five").await;
    model.reply(failed("context_length_exceeded", "too long"));
    server.run_turn(&thread, "six").await;
    model.reply(message("Summary three.")).reply(message("Better."));
    server.run_turn(&thread, "seven").await;
    assert_eq!(model.unused(), 0);
    file(&server, &thread).await;

    check_same(&home, &thread, &[], 7).await;
    // The global instructions have changed since.
    home.write("AGENTS.md", "Be long.");
    let (report, _) = replay(&home, &thread, &[]).await;
    assert_eq!(report["difference"]["turn"], 1, "{report:#}");
    check_same(&home, &thread, &["--without-situation"], 7).await;
}

/// Its context messages differ; everything else is the same.
#[tokio::test]
async fn threads_of_the_reference_are_replayed() {
    let Some(reference) = reference(env!("CARGO_TARGET_TMPDIR")) else { return };
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let theirs = started(Launch::new(&reference).args(["app-server"]), &home).await;
    let thread = theirs.request("thread/start", json!({ "persistExtendedHistory": true })).await.expect("a thread");
    let thread = thread["thread"]["id"].as_str().unwrap().to_owned();
    // Without reasoning items, which its rollouts do not keep.
    let turns = [0, 2, 4, 6, 7, 9, 10];
    for turn in turns {
        answers(turn).into_iter().for_each(|answer| _ = model.reply(answer));
        theirs.run_turn(&thread, &format!("turn {turn}")).await;
    }
    model.reply(
        added(json!({ "type": "message", "role": "assistant", "id": "msg_i", "content": [] }))
            .then(text_delta("So far"))
            .wait(&Gate::new()),
    );
    interrupted(&theirs, &thread, "item/agentMessage/delta").await;
    model.reply(message("Well."));
    theirs.run_turn(&thread, "and?").await;
    ended(theirs).await;
    check_same(&home, &thread, &["--without-situation"], turns.len() + 2).await;
}

async fn steer(server: &Server, thread: &str, turn: &str, text: &str) {
    let input = json!([{ "type": "text", "text": text }]);
    let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": input });
    server.request("turn/steer", params).await.expect("it runs");
}

/// A turn that is interrupted after the first notification with this method.
async fn interrupted(server: &Server, thread: &str, when: &str) {
    let turn = server.start_turn(thread, "go on").await.id;
    let about = |told: &Value| {
        told["turnId"] == *turn && told["item"]["type"] != "userMessage" && told["item"]["type"] != "agentMessage"
    };
    server.notification_where(when, about).await;
    server.request("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await.expect("it runs");
    server.turn_completed(thread).await;
}

#[tokio::test]
async fn an_unreplayable_thread_is_an_error() {
    let home = Home::empty();
    let ended = run(&home, &["replay", "nobody"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("unknown thread `nobody`"), "{ended:?}");
    let ended = run(&home, &["replay", "last", "--recording", "/nowhere"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot read /nowhere"), "{ended:?}");
}

//! Faults of the model's provider: each turn ends with the right error or recovers, no tool runs twice, and the
//! thread can be continued.

use loomd_testkit::model::{
    Reply, added, done, error, failed, function_call, garbage, hang_up, incomplete, message, rate_limited, reasoning,
    server_error, shell, status, streamed, text_delta,
};
use loomd_testkit::{Gate, Home, ScriptedModel};
use serde_json::{Value, json};

use crate::audit::settled;
use crate::common::initialized;

/// The stream idle timeout. Replies that come at all come at once.
const SILENCE_MS: u64 = 1_000;

/// The outcome of a turn.
#[derive(Debug, PartialEq)]
struct TurnOutcome {
    status: &'static str,
    info: Value,
    /// Number of announced retries.
    retries: usize,
    /// The last message of the agent.
    message_text: Option<String>,
}

fn completed(retries: usize, message_text: &str) -> TurnOutcome {
    TurnOutcome { status: "completed", info: Value::Null, retries, message_text: Some(message_text.into()) }
}

fn fails(retries: usize, info: Value) -> TurnOutcome {
    TurnOutcome { status: "failed", info, retries, message_text: None }
}

fn cut() -> Value {
    json!({ "responseStreamDisconnected": { "httpStatusCode": null } })
}

/// Runs a turn with these replies and this many retries, and then one without faults. Returns the output file of the
/// first turn's command.
async fn check(what: &str, retries: u64, replies: Vec<Reply>, expected: TurnOutcome) -> String {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(&format!(
        "sandbox_mode = \"danger-full-access\"\n[model_providers.scripted]\nstream_max_retries = {retries}\n\
         stream_idle_timeout_ms = {SILENCE_MS}"
    ));
    for reply in replies {
        model.reply(reply);
    }
    let server = initialized(&home).await;
    let thread = server.start_thread(Default::default()).await;
    let turn = json!(server.run_turn(&thread.id, "go").await);
    let mut messages = server.completed_items(&thread.id).into_iter().map(|item| json!(item)).rev();
    let message_text = messages.find(|item| item["type"] == "agentMessage").map(|item| item["text"].clone());
    let status = ["completed", "failed", "interrupted"].into_iter().find(|status| turn["status"] == *status);
    let retried = |error: &&Value| error["willRetry"] == true;
    let seen = TurnOutcome {
        status: status.expect("a status"),
        info: turn["error"]["codexErrorInfo"].clone(),
        retries: server.notifications("error").iter().filter(retried).count(),
        message_text: message_text
            .filter(|_| expected.message_text.is_some())
            .and_then(|message_text| message_text.as_str().map(Into::into)),
    };
    assert_eq!(seen, expected, "{what}: {turn}");
    assert_eq!(model.unused(), 0, "{what}: every reply was used");

    model.reply(message("fine"));
    let next = server.run_turn(&thread.id, "and now?").await;
    assert_eq!(json!(next)["status"], "completed", "{what}: the next turn: {next:?}");
    assert_eq!(settled(&server).await, [] as [String; 0], "{what}");
    let read = server.request("thread/read", json!({ "threadId": thread.id, "includeTurns": true })).await;
    let statuses: Vec<Value> = read.expect("a thread")["thread"]["turns"]
        .as_array()
        .expect("turns")
        .iter()
        .map(|turn| turn["status"].clone())
        .collect();
    assert_eq!(statuses, [expected.status, "completed"], "{what}: what is stored");
    std::fs::read_to_string(home.work().join("ran")).unwrap_or_default()
}

#[tokio::test]
async fn a_broken_stream_without_retries_fails_the_turn() {
    let connect = json!({ "httpConnectionFailed": { "httpStatusCode": null } });
    let begun = || added(json!({ "type": "message", "role": "assistant", "id": "msg_a", "content": [] }));
    let search = || added(json!({ "type": "web_search_call", "id": "ws_a" }));
    let half = json!({ "type": "response.output_text.delta", "delta": "never seen" });
    for (what, reply, info) in [
        ("closes without a word", hang_up(), connect.clone()),
        ("speaks no HTTP", garbage("\x00\x01 hello \r\n\r\n"), connect),
        ("closes before any event", Reply::new().close(), cut()),
        ("ends without completing", Reply::new().unfinished(), cut()),
        ("closes in a message", begun().then(text_delta("half a")).close(), cut()),
        ("closes in an empty message", begun().close(), cut()),
        ("closes in an event", begun().half(half).close(), cut()),
        ("closes in reasoning", reasoning(&["why"], &["because"]).then(begun()).close(), cut()),
        ("closes in a search", search().close(), cut()),
        ("is silent", Reply::new().wait(&Gate::new()), cut()),
        ("is silent in a message", begun().then(text_delta("well")).wait(&Gate::new()), cut()),
        ("says that it failed", begun().then(failed("server_error", "broke")), cut()),
        ("says that it stopped short", begun().then(incomplete("max_output_tokens")), cut()),
        ("is full", failed("context_length_exceeded", "too long"), json!("contextWindowExceeded")),
        ("has no quota", failed("insufficient_quota", "pay"), json!("usageLimitExceeded")),
    ] {
        check(what, 0, vec![reply], fails(0, info)).await;
    }
}

#[tokio::test]
async fn an_error_status_of_the_provider_is_in_the_turn_error() {
    let http = |status: u16| json!({ "httpConnectionFailed": { "httpStatusCode": status } });
    let limited = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } });
    for (what, reply, info) in [
        ("400", error(400, "bad", "bad field"), json!("badRequest")),
        ("401", error(401, "key", "no such key"), json!("unauthorized")),
        ("404", error(404, "none", "nothing here"), http(404)),
        ("429", rate_limited(None), limited.clone()),
        ("429 with a time", rate_limited(Some(1)), limited.clone()),
        ("500", server_error(), json!("internalServerError")),
        ("502", status(502, json!("<html>bad gateway</html>")), http(502)),
        ("503", error(503, "server_is_overloaded", "busy"), json!("serverOverloaded")),
        ("200 with an error", error(200, "server_error", "broke"), cut()),
        ("200 with a page", status(200, json!("<html>log in</html>")), http(200)),
    ] {
        check(what, 0, vec![reply], fails(0, info)).await;
    }
    // A retry-after of ten minutes fails the turn at once.
    check("429 with a long time", 5, vec![rate_limited(Some(600))], fails(0, limited)).await;
}

#[tokio::test]
async fn a_broken_stream_is_retried() {
    let begun = || added(json!({ "type": "message", "role": "assistant", "id": "msg_a", "content": [] }));
    for (what, reply) in [
        ("closes without a word", hang_up()),
        ("speaks no HTTP", garbage("HTTP/1.1 what\r\n\r\n")),
        ("closes in a message", begun().then(text_delta("half a")).close()),
        ("closes in an event", begun().half(json!({ "type": "response.completed" })).close()),
        ("is silent", Reply::new().wait(&Gate::new())),
        ("says that it failed", failed("server_error", "broke")),
        ("429", rate_limited(None)),
        ("429 with a time", rate_limited(Some(1))),
        ("500", server_error()),
        ("200 with an error", error(200, "server_error", "broke")),
    ] {
        check(what, 2, vec![reply, message("better")], completed(1, "better")).await;
    }
    let thrice = vec![hang_up(), server_error(), begun().close()];
    check("fails thrice", 2, thrice, fails(2, cut())).await;
}

#[tokio::test]
async fn malformed_events_are_skipped_and_partial_ones_joined() {
    let pieces = ["Grüße, ", "Jürgen", " 👋", "\n"];
    let nonsense = Reply::new()
        .bytes("data: {\"type\":\n\n")
        .bytes(b"\xff\xfe\n\n".to_vec())
        .bytes(": a comment\nevent: x\ndata: 7\n\ndata\n\n")
        .then(done(json!({ "type": "telepathy", "id": "x" })))
        .then(done(json!("not an object")))
        .then(text_delta("to nobody"))
        .then(message("clear"));
    check("garbage between events", 0, vec![nonsense], completed(0, "clear")).await;
    check("drips", 0, vec![streamed(&pieces).drip()], completed(0, &pieces.concat())).await;
    let dripped = vec![shell("echo once >> ran").drip(), message("done").drip()];
    assert_eq!(check("drips a call", 0, dripped, completed(0, "done")).await, "once\n");
}

#[tokio::test]
async fn no_command_runs_twice_when_the_stream_breaks() {
    let call = || shell("echo once >> ran");
    let session = || function_call("exec_command", json!({ "cmd": "echo once >> ran", "login": false }), "call_x");
    for (what, reply) in [
        ("closes", call().close()),
        ("closes after a session", session().close()),
        ("closes in the next event", call().half(json!({ "type": "response.output_item.done" })).close()),
        ("is silent", call().wait(&Gate::new())),
        ("says that it failed", call().then(failed("server_error", "broke"))),
        ("never ends", call().unfinished()),
    ] {
        let ran = check(what, 2, vec![reply.clone(), message("done")], completed(1, "done")).await;
        assert_eq!(ran, "once\n", "{what}");
        let ran = check(what, 0, vec![reply], fails(0, cut())).await;
        assert_eq!(ran, "once\n", "{what} for good");
    }
    // The output of its call is all that the model needs.
    let short = vec![call().then(incomplete("max_output_tokens")), message("done")];
    assert_eq!(check("stops short", 0, short, completed(0, "done")).await, "once\n");
}

#[tokio::test]
async fn a_retried_request_has_the_tool_outputs_of_the_broken_stream() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model)
        .with("sandbox_mode = \"danger-full-access\"\n[model_providers.scripted]\nstream_max_retries = 1");
    model.reply(function_call("shell_command", json!({ "command": "echo found", "login": false }), "call_a").close());
    let server = initialized(&home).await;
    let thread = server.start_thread(Default::default()).await;
    assert_eq!(json!(server.run_turn(&thread.id, "look").await)["status"], "completed");
    let again = model.call(1).await;
    let output = again.tool_output("call_a").and_then(Value::as_str).expect("an output");
    assert!(output.ends_with("Output:\nfound\n"), "{output}");
}

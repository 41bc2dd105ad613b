//! The messages of `docs/protocol.md` and `docs/plan-mode.md`.

use std::collections::BTreeMap;

use loomd_testkit::Home;
use serde_json::{Value, json};

use super::conversation::Conversation;

fn home() -> Home {
    Home::empty().with(
        r#"
        model = "rehearsal"
        model_provider = "rehearsal"
        approval_policy = "untrusted"
        sandbox_mode = "danger-full-access"
        "#,
    )
}

/// The messages, by the name of the block that shows them.
pub async fn capture() -> BTreeMap<String, String> {
    let home = home();
    let mut blocks = BTreeMap::new();
    let mut without_handshake = Conversation::start(&home);
    without_handshake.request("thread/start", json!({})).await;
    let too_early = without_handshake.take();

    let mut server = Conversation::start(&home);
    handshake(&mut server).await;
    blocks.insert("handshake".to_owned(), server.take());

    let started = server.request("thread/start", json!({ "cwd": home.work() })).await;
    let thread = started["thread"]["id"].clone();
    server.until(|message| message["method"] == "thread/started").await;
    blocks.insert("thread".into(), server.take());

    turn(&mut server, &thread, "Say hello.").await;
    server.until(|message| message["method"] == "turn/completed").await;
    blocks.insert("turn".into(), server.take());

    turn(&mut server, &thread, "Run `touch made.txt`.").await;
    let request = server.until(|message| message["method"] == "item/commandExecution/requestApproval").await;
    server.send(json!({ "id": request["id"], "result": { "decision": "accept" } })).await;
    server.until(|message| message["method"] == "turn/completed").await;
    assert!(home.work().join("made.txt").exists());
    blocks.insert("approval".into(), server.take());

    turn(&mut server, &thread, "Fail with bad request.").await;
    server.until(|message| message["method"] == "turn/completed").await;
    blocks.insert("failed".into(), only(&server.take(), &["\"error\"", "turn/completed"]));

    let running = turn(&mut server, &thread, "Wait 600 s.").await;
    // Until the model is called nothing may be left to send.
    server.until(|message| message["method"] == "item/completed").await;
    server.take();
    let interrupt = json!({ "threadId": thread, "turnId": running["turn"]["id"] });
    server.request("turn/interrupt", interrupt).await;
    server.until(|message| message["method"] == "turn/completed").await;
    blocks.insert("interrupt".into(), only(&server.take(), &["turn/interrupt", "\"result\"", "turn/completed"]));

    server.request("thread/forget", json!({})).await;
    server.request("turn/start", json!({ "threadId": thread })).await;
    server.request("turn/start", json!({ "threadId": "nobody", "input": [] })).await;
    blocks.insert("errors".into(), too_early + &server.take());

    let mut again = Conversation::start(&home);
    handshake(&mut again).await;
    again.take();
    again.request("thread/resume", json!({ "threadId": thread, "excludeTurns": true })).await;
    blocks.insert("resume".into(), again.take());
    blocks
}

/// The message of `docs/plan-mode.md`.
pub async fn capture_plan() -> BTreeMap<String, String> {
    let home = home();
    let mut server = Conversation::start(&home);
    let capabilities = json!({ "experimentalApi": true });
    let client = json!({ "name": "my_client", "version": "1.0" });
    server.request("initialize", json!({ "clientInfo": client, "capabilities": capabilities })).await;
    server.send(json!({ "method": "initialized" })).await;
    let started = server.request("thread/start", json!({ "cwd": home.work() })).await;
    server.until(|message| message["method"] == "thread/started").await;
    server.take();
    let settings = json!({ "model": "rehearsal", "reasoning_effort": null, "developer_instructions": null });
    let params = json!({
        "threadId": started["thread"]["id"],
        "input": [{ "type": "text", "text": "Propose `1. Read the tests\n2. Add the missing one`." }],
        "collaborationMode": { "mode": "plan", "settings": settings },
    });
    server.request("turn/start", params).await;
    server.until(|message| message["method"] == "turn/completed").await;
    let shown = only(&server.take(), &["collaborationMode", "\"type\": \"plan\"", "turn/completed"]);
    BTreeMap::from([("plan".to_owned(), shown)])
}

async fn handshake(server: &mut Conversation) {
    let client = json!({ "name": "my_client", "title": "My client", "version": "1.0" });
    server.request("initialize", json!({ "clientInfo": client })).await;
    server.send(json!({ "method": "initialized" })).await;
}

async fn turn(server: &mut Conversation, thread: &Value, text: &str) -> Value {
    let input = json!([{ "type": "text", "text": text }]);
    server.request("turn/start", json!({ "threadId": thread, "input": input })).await
}

/// The messages that contain one of these texts.
fn only(messages: &str, wanted: &[&str]) -> String {
    let mut kept = String::new();
    let mut keeping = false;
    let lines: Vec<_> = messages.split_inclusive('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with(['→', '←']) {
            let rest = lines[index + 1..].iter().take_while(|line| !line.starts_with(['→', '←']));
            let message: String = std::iter::once(line).chain(rest).copied().collect();
            keeping = wanted.iter().any(|text| message.contains(text));
        }
        if keeping {
            kept += line;
        }
    }
    kept
}

//! Every message of a long mixed run is what the schemas of its level describe: those that this program generates and,
//! where they are at hand, those of the recorded releases.

mod validator;

use std::collections::BTreeMap;
use std::path::Path;

use loomd_protocol::schema::{Definitions, Format, Surface, inventory, json_schemas};
use loomd_protocol::{Level, client_requests};
use loomd_testkit::model::{custom_call, error, function_call, message, reasoning, streamed};
use loomd_testkit::{Home, ScriptedModel, Server};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use crate::common::launch;
use validator::Bundle;

const BUNDLE: &str = "codex_app_server_protocol.schemas.json";
const OLDER: &str = include_str!("../../../protocol/inventory/0.118.0.txt");
const NEWER: &str = include_str!("../../../protocol/inventory/0.166.0.txt");
/// The rounds of the mixed run.
const ROUNDS: usize = 10;

#[tokio::test]
async fn the_messages_of_a_mixed_run_are_those_of_the_schemas_of_each_level() {
    for level in Level::ALL {
        let said = mixed_run(level).await;
        assert!(said.messages.len() >= 500, "{} messages", said.messages.len());
        for bundle in [Some(generated(level)), recorded(level)].into_iter().flatten() {
            let problems = said.problems(&bundle);
            assert!(
                problems.is_empty(),
                "at {level}: {} problems: {:#?}",
                problems.len(),
                &problems[..problems.len().min(12)]
            );
        }
    }
}

fn generated(level: Level) -> Bundle {
    let all = Definitions::collect(Surface::Experimental, Format::JsonSchema);
    let [older, newer] = [OLDER, NEWER].map(|release| inventory::parse(release, Surface::Experimental));
    let definitions = if level == Level::V0_118 { all.of_release(&older, &newer) } else { all };
    let file = json_schemas(&definitions).into_iter().find(|file| file.path == BUNDLE).unwrap();
    Bundle(serde_json::from_str(&file.text).unwrap())
}

/// The schemas of the release itself; `None` when this copy of the project has none beside it.
fn recorded(level: Level) -> Option<Bundle> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/schema");
    let text = std::fs::read_to_string(folder.join(format!("{level}-experimental.json"))).ok();
    if text.is_none() {
        eprintln!("skipped: no recorded schemas of {level}");
    }
    text.map(|text| Bundle(serde_json::from_str(&text).unwrap()))
}

/// What a server said.
struct Said {
    /// Notifications and requests of the server.
    messages: Vec<Value>,
    /// Methods, and the results of the answers.
    answers: Vec<(String, Value)>,
}

impl Said {
    fn problems(&self, bundle: &Bundle) -> Vec<String> {
        let results = result_types();
        let mut problems = Vec::new();
        for message in &self.messages {
            let union = if message.get("id").is_some() { "ServerRequest" } else { "ServerNotification" };
            problems.extend(bundle.problems(union, message));
        }
        for (method, result) in &self.answers {
            problems.extend(results.get(method).into_iter().flat_map(|name| bundle.problems(name, result)));
        }
        problems.sort();
        problems.dedup();
        problems
    }
}

/// The names of the results' types by method.
fn result_types() -> BTreeMap<String, String> {
    let name = |schema: fn(&mut SchemaGenerator) -> schemars::Schema| {
        let schema = schema(&mut SchemaGenerator::default()).to_value();
        Some(schema["$ref"].as_str()?.rsplit('/').next()?.to_owned())
    };
    client_requests().iter().filter_map(|row| Some((row.method.to_owned(), name(row.result?)?))).collect()
}

/// Talks to a server of a level about everything that needs no other service.
async fn mixed_run(level: Level) -> Said {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("approval_policy = \"on-request\"\nsandbox_mode = \"danger-full-access\"");
    let server = launch().env("LOOMD_PROTOCOL_VERSION", level.version()).stdio(&home);
    let mut said = Said { messages: Vec::new(), answers: Vec::new() };
    server.initialize().await;
    for round in 0..ROUNDS {
        let tools = json!([{ "name": "lookup", "description": "d", "inputSchema": { "type": "object" } }]);
        let opened = said.ask(&server, "thread/start", json!({ "dynamicTools": tools })).await;
        let thread = opened["thread"]["id"].as_str().unwrap().to_owned();
        turns(&mut said, &server, &model, &thread, round).await;
        around(&mut said, &server, &thread, level).await;
    }
    for method in
        ["model/list", "config/read", "skills/list", "account/read", "mcpServerStatus/list", "configRequirements/read"]
    {
        said.ask(&server, method, json!({})).await;
    }
    said.messages = server.messages().into_iter().filter(|message| message.get("method").is_some()).collect();
    said
}

/// Turns with each kind of item.
async fn turns(said: &mut Said, server: &Server, model: &ScriptedModel, thread: &str, round: usize) {
    let plan = json!({ "plan": [{ "step": "look", "status": "in_progress" }], "explanation": "why" });
    let asks = json!({ "cmd": "touch asked", "sandbox_permissions": "require_escalated", "justification": "May I?" });
    let patch = format!("*** Begin Patch\n*** Add File: file-{round}.txt\n+new\n*** End Patch\n");
    model
        .reply(reasoning(&["thinking"], &["hard"]).then(streamed(&["one ", "two ", "three"])))
        .reply(function_call("update_plan", plan, "plan"))
        .reply(function_call("exec_command", json!({ "cmd": "echo out; false", "login": false }), "run"))
        .reply(custom_call("apply_patch", &patch, "patch"))
        .reply(message("done"));
    said.ask(server, "turn/start", json!({ "threadId": thread, "input": text("first") })).await;
    server.turn_completed(thread).await;
    said.ask(server, "turn/start", json!({ "threadId": thread, "input": text("second") })).await;
    server.turn_completed(thread).await;

    model.reply(function_call("lookup", json!({ "a": 1 }), "tool")).reply(message("looked up"));
    said.ask(server, "turn/start", json!({ "threadId": thread, "input": text("third") })).await;
    let (id, _) = server.server_request("item/tool/call").await;
    server.respond(&id, json!({ "success": true, "contentItems": [{ "type": "inputText", "text": "it" }] })).await;
    server.turn_completed(thread).await;

    model.reply(function_call("exec_command", asks, "asks")).reply(message("asked"));
    let params = json!({
        "threadId": thread, "input": text("fourth"), "sandboxPolicy": { "type": "workspaceWrite", "writableRoots": [] },
    });
    said.ask(server, "turn/start", params).await;
    let (id, _) = server.server_request("item/commandExecution/requestApproval").await;
    server.respond(&id, json!({ "decision": "accept" })).await;
    server.turn_completed(thread).await;

    model.reply(error(400, "invalid_request_error", "no"));
    said.ask(server, "turn/start", json!({ "threadId": thread, "input": text("fifth") })).await;
    server.turn_completed(thread).await;
}

/// Requests about a thread, and those that only one release has.
async fn around(said: &mut Said, server: &Server, thread: &str, level: Level) {
    let this = json!({ "threadId": thread });
    said.ask(server, "thread/read", json!({ "threadId": thread, "includeTurns": true })).await;
    said.ask(server, "thread/name/set", json!({ "threadId": thread, "name": "a name" })).await;
    let fork = said.ask(server, "thread/fork", this.clone()).await;
    said.ask(server, "thread/archive", json!({ "threadId": fork["thread"]["id"] })).await;
    said.ask(server, "thread/unarchive", json!({ "threadId": fork["thread"]["id"] })).await;
    said.ask(server, "thread/resume", this.clone()).await;
    said.ask(server, "thread/list", json!({})).await;
    said.ask(server, "thread/loaded/list", json!({})).await;
    if level == Level::V0_166 {
        said.ask(server, "thread/turns/list", json!({ "threadId": thread, "itemsView": "full" })).await;
        said.ask(server, "thread/items/list", this.clone()).await;
        said.ask(server, "thread/goal/set", json!({ "threadId": thread, "objective": "o", "status": "paused" })).await;
        said.ask(server, "thread/goal/get", this.clone()).await;
        said.ask(server, "thread/goal/clear", this.clone()).await;
        said.ask(server, "thread/settings/update", json!({ "threadId": thread, "effort": "low" })).await;
        said.ask(server, "thread/queue/list", this.clone()).await;
        said.ask(server, "permissionProfile/list", json!({})).await;
        said.ask(server, "server/diagnostics", json!({})).await;
    } else {
        said.ask(server, "thread/rollback", json!({ "threadId": thread, "numTurns": 1 })).await;
    }
}

impl Said {
    /// Makes a request that must succeed, and notes its answer.
    async fn ask(&mut self, server: &Server, method: &str, params: Value) -> Value {
        let answer = server.request(method, params).await.unwrap_or_else(|error| panic!("{method}: {error:?}"));
        self.answers.push((method.to_owned(), answer.clone()));
        answer
    }
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

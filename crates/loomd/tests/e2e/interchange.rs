//! Threads of this server and of the reference, resumed by the other in the same home.

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, Launch, ScriptedModel, Server, reference};
use serde_json::{Value, json};

use crate::common::launch;

#[tokio::test]
async fn each_server_resumes_the_threads_of_the_other() {
    let Some(reference) = reference(env!("CARGO_TARGET_TMPDIR")) else { return };
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);

    model.reply(message("from the reference"));
    let theirs = started(Launch::new(&reference).args(["app-server"]), &home).await;
    let thread = theirs.start_thread(Default::default()).await;
    theirs.run_turn(&thread.id, "first question").await;
    let shown = turns(&theirs, &thread.id).await;
    ended(theirs).await;

    let ours = started(launch(), &home).await;
    assert_eq!(listed(&ours).await, [(thread.id.clone(), "first question".to_owned(), Value::Null)]);
    assert_eq!(turns(&ours, &thread.id).await, shown);
    ours.request("thread/resume", json!({ "threadId": thread.id })).await.expect("a thread of the reference resumes");
    let fork = ours.request("thread/fork", json!({ "threadId": thread.id })).await.expect("it can be forked");
    let fork = fork["thread"]["id"].as_str().expect("an id").to_owned();
    ours.request("thread/name/set", json!({ "threadId": fork, "name": "our fork" })).await.expect("it can be named");
    let forked = turns(&ours, &fork).await;
    ended(ours).await;

    model.reply(message("and again"));
    let theirs = started(Launch::new(&reference).args(["app-server"]), &home).await;
    let mut all = listed(&theirs).await;
    all.sort_by_key(|(id, ..)| *id != fork);
    assert_eq!(all[0], (fork.clone(), "first question".to_owned(), json!("our fork")));
    assert_eq!(turns(&theirs, &fork).await, forked);
    theirs.request("thread/resume", json!({ "threadId": fork })).await.expect("the reference resumes our fork");
    theirs.run_turn(&fork, "second question").await;
    let shown = turns(&theirs, &fork).await;
    ended(theirs).await;

    let ours = started(launch(), &home).await;
    assert_eq!(turns(&ours, &fork).await, shown);
    assert_eq!(shown.as_array().map(Vec::len), Some(2));
    ended(ours).await;
}

#[tokio::test]
async fn the_reference_resumes_a_thread_with_recorded_approvals() {
    let Some(reference) = reference(env!("CARGO_TARGET_TMPDIR")) else { return };
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let arguments = json!({ "command": "touch made", "login": false });
    model.reply(function_call("shell_command", arguments, "call_1")).reply(message("done"));
    let ours = started(launch(), &home).await;
    let params = json!({ "cwd": home.work(), "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
    let thread = ours.request("thread/start", params).await.expect("a thread")["thread"]["id"].take();
    let thread = thread.as_str().expect("an id").to_owned();
    ours.start_turn(&thread, "first question").await;
    let approved = async {
        let (id, _) = ours.server_request("item/commandExecution/requestApproval").await;
        ours.respond(&id, json!({ "decision": "accept" })).await;
    };
    tokio::join!(approved, ours.turn_completed(&thread));
    let shown = turns(&ours, &thread).await;
    ended(ours).await;

    model.reply(message("and again"));
    let theirs = started(Launch::new(&reference).args(["app-server"]), &home).await;
    assert_eq!(listed(&theirs).await, [(thread.clone(), "first question".to_owned(), Value::Null)]);
    let count = |turns: &Value| turns.as_array().map(Vec::len);
    assert_eq!(count(&turns(&theirs, &thread).await), count(&shown));
    theirs.request("thread/resume", json!({ "threadId": thread })).await.expect("the reference resumes it");
    theirs.run_turn(&thread, "second question").await;
    ended(theirs).await;
}

pub async fn started(launch: Launch, home: &Home) -> Server {
    let server = launch.stdio(home);
    server.initialize().await;
    server
}

pub async fn ended(mut server: Server) {
    server.close_stdin().await;
    assert_eq!(server.wait_exit().await.code(), Some(0));
}

/// Id, preview and name of each listed thread.
async fn listed(server: &Server) -> Vec<(String, String, Value)> {
    let page = server.request("thread/list", json!({})).await.expect("a list");
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let rows = page["data"].as_array().expect("rows");
    rows.iter().map(|row| (text(row, "id"), text(row, "preview"), row["name"].clone())).collect()
}

pub async fn turns(server: &Server, id: &str) -> Value {
    let params = json!({ "threadId": id, "includeTurns": true });
    let mut turns =
        server.request("thread/read", params).await.expect("a thread with its turns")["thread"]["turns"].take();
    for turn in turns.as_array_mut().into_iter().flatten() {
        forget(turn, &["itemsView", "startedAt", "completedAt", "durationMs", "rootTurnId"]);
        turn["items"].as_array_mut().into_iter().flatten().for_each(|item| forget(item, &["clientId"]));
    }
    turns
}

/// Removes fields that only the newer release has.
fn forget(value: &mut Value, newer: &[&str]) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !newer.contains(&name.as_str()));
    }
}

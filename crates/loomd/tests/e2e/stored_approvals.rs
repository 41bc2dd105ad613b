//! Approvals as stored objects: listed and decided by any client, with deadlines, and recorded.

use std::fs;
use std::path::{Path, PathBuf};

use loomd_protocol::{ApprovalFilter, ApprovalListParams, ApprovalState, call};
use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, Peer, ScriptedModel, Signal};
use serde_json::{Value, json};

use crate::common::launch;

const APPROVAL: &str = "item/commandExecution/requestApproval";

fn made(model: &ScriptedModel) {
    let arguments = json!({ "command": "echo made > made", "login": false });
    model.reply(function_call("shell_command", arguments, "call_1")).reply(message("done"));
}

async fn thread(client: &Peer, home: &Home) -> String {
    let params = json!({ "cwd": home.work(), "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
    let started = client.request("thread/start", params).await.expect("a thread");
    started["thread"]["id"].as_str().expect("an id").to_owned()
}

/// The lines of all files below a folder that contain a word, as JSON.
fn lines_with(folder: &Path, word: &str) -> Vec<Value> {
    let mut folders: Vec<PathBuf> = vec![folder.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read_to_string(entry.path()).expect("a file of lines");
            found.extend(
                text.lines().filter(|line| line.contains(word)).map(|line| serde_json::from_str(line).unwrap()),
            );
        }
    }
    found
}

async fn all(client: &Peer, state: Option<ApprovalFilter>) -> Vec<loomd_protocol::ApprovalRecord> {
    let params = ApprovalListParams { state, ..Default::default() };
    client.call::<call::ApprovalList>(params).await.expect("a list").data
}

#[tokio::test]
async fn a_client_that_was_not_sent_the_request_decides_it_and_who_decided_survives_a_restart() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let mut server = launch().websocket(&home).await;
    let (driver, other) = (server.connect().await, server.connect().await);
    driver.initialize().await;
    other.initialize().await;
    let id = thread(&driver, &home).await;
    made(&model);
    driver.start_turn(&id, "make it").await;
    let (request, params) = driver.server_request(APPROVAL).await;
    let open = all(&other, Some(ApprovalFilter::Open)).await;
    let [approval] = &open[..] else { panic!("{open:?}") };
    assert_eq!((approval.method.as_str(), &approval.params["itemId"]), (APPROVAL, &params["itemId"]));
    assert_eq!((approval.state, approval.deadline, &approval.thread_id), (ApprovalState::Open, None, &id));
    let decide = |decision: &str| json!({ "approvalId": approval.id, "decision": decision });
    let invalid = other.request("approval/decide", decide("perhaps")).await.unwrap_err();
    assert_eq!((invalid.code, invalid.data), (-32602, Some(json!({ "reason": "invalidDecision" }))));
    let decided = other.request("approval/decide", decide("accept")).await.expect("a decision");
    assert_eq!(
        (&decided["approval"]["state"], &decided["approval"]["decision"]),
        (&json!("decided"), &json!("accept"))
    );
    let resolved = driver.notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], serde_json::to_value(&request).unwrap());
    driver.turn_completed(&id).await;
    assert_eq!(fs::read_to_string(home.work().join("made")).expect("the command ran"), "made\n");
    let second = driver.request("approval/decide", decide("decline")).await.unwrap_err();
    let data = second.data.expect("data");
    assert_eq!((second.code, &data["reason"]), (-32600, &json!("alreadyDecided")));
    assert_eq!(data["decidedBy"], decided["approval"]["decidedBy"]);
    assert_eq!(data["decidedBy"]["client"].as_str().map(str::is_empty), Some(false), "{data}");
    let unknown = json!({ "approvalId": "01a1e4c9-8436-78b1-8da0-787d21da3dcb", "decision": "accept" });
    let unknown = driver.request("approval/decide", unknown).await.unwrap_err();
    assert_eq!(unknown.data, Some(json!({ "reason": "unknownApproval" })));

    server.signal(Signal::KILL);
    server.wait_exit().await;
    let server = launch().websocket(&home).await;
    let client = server.connect().await;
    client.initialize().await;
    let kept = all(&client, None).await;
    assert_eq!(serde_json::to_value(&kept).unwrap(), json!([decided["approval"]]));
    let audits = lines_with(&home.path().join("sessions"), "loomd_approval");
    let [audit] = &audits[..] else { panic!("{audits:?}") };
    assert_eq!(
        (&audit["payload"]["approval_id"], &audit["payload"]["decision"]),
        (&json!(approval.id), &json!("accept"))
    );
    client.request("thread/delete", json!({ "threadId": id })).await.expect("it can be deleted");
    assert_eq!(all(&client, None).await, []);
}

#[tokio::test]
async fn the_default_decision_counts_when_nobody_decides_until_the_deadline() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("loomd.approvals = { timeout_sec = 0, default = 'accept' }\n");
    let mut server = launch().stdio(&home);
    server.initialize().await;
    let id = thread(&server, &home).await;
    made(&model);
    server.run_turn(&id, "make it").await;
    assert_eq!(fs::read_to_string(home.work().join("made")).expect("the command ran"), "made\n");
    let ended = all(&server, Some(ApprovalFilter::Decided)).await;
    let [approval] = &ended[..] else { panic!("{ended:?}") };
    let by = approval.decided_by.as_ref().map(|by| by.connection.as_str());
    assert_eq!((approval.state, by), (ApprovalState::Expired, Some("deadline")));
    assert_eq!((approval.deadline, &approval.decision), (Some(approval.asked_at), &Some(json!("accept"))));
    server.close_stdin().await;
    server.wait_exit().await;
    let entries = lines_with(&home.path().join("loomd/ledger"), "\"approval\"");
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&entry["state"], &entry["connection"]), (&json!("expired"), &json!("deadline")));
}

#[tokio::test]
async fn an_interrupted_turn_cancels_its_approval_and_ephemeral_threads_store_none() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let server = launch().stdio(&home);
    server.initialize().await;
    let params = json!({ "cwd": home.work(), "approvalPolicy": "untrusted", "ephemeral": true });
    let started = server.request("thread/start", params).await.expect("a thread");
    let ephemeral = started["thread"]["id"].as_str().expect("an id").to_owned();
    let stored = thread(&server, &home).await;
    for id in [&ephemeral, &stored] {
        made(&model);
        let turn = server.start_turn(id, "make it").await;
        server.server_request(APPROVAL).await;
        let params = json!({ "threadId": id, "turnId": turn.id });
        server.request("turn/interrupt", params).await.expect("it can be interrupted");
        server.turn_completed(id).await;
        model.forget_replies();
    }
    let listed = all(&server, None).await;
    let shown: Vec<_> = listed.iter().map(|approval| (approval.thread_id.as_str(), approval.state)).collect();
    assert_eq!(shown, [(stored.as_str(), ApprovalState::Cancelled), (&ephemeral, ApprovalState::Cancelled)]);
    let page = json!({ "limit": 1 });
    let page = server.request("approval/list", page).await.expect("a page");
    let next = json!({ "limit": 1, "cursor": page["nextCursor"] });
    let next = server.request("approval/list", next).await.expect("a page");
    assert_eq!((&next["data"][0]["threadId"], &next["nextCursor"]), (&json!(ephemeral), &Value::Null));
    let wrong = server.request("approval/list", json!({ "cursor": "x" })).await.unwrap_err();
    assert!(wrong.code == -32600 && wrong.message.starts_with("invalid cursor"), "{wrong:?}");
}

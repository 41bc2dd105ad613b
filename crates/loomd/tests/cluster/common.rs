//! Nodes, threads on them, and what their clients have seen.

use std::sync::Arc;
use std::time::Duration;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Cluster, ClusterNode, Database, Peer, Postgres, ScriptedModel, TIMEOUT, WsConnection};
use serde_json::{Value, json};

pub const LOOMD: &str = env!("CARGO_BIN_EXE_loomd");
pub const APPROVAL: &str = "item/commandExecution/requestApproval";

/// How long sessions of nodes live here: long enough for a busy machine, as they are renewed three times in it.
pub const SESSION_TTL: Duration = Duration::from_millis(3_000);

/// A cluster without nodes; `None`, after a line that says so, without PostgreSQL.
pub fn empty_cluster() -> Option<Cluster> {
    Some(Cluster::new(LOOMD, Some(Database::Shared(Postgres::shared()?)), SESSION_TTL))
}

/// A cluster of some nodes.
pub async fn cluster<const NODES: usize>(model: &ScriptedModel) -> Option<(Cluster, [Arc<ClusterNode>; NODES])> {
    let mut cluster = empty_cluster()?;
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(cluster.add(model, "").await);
    }
    let nodes = nodes.try_into().unwrap_or_else(|_| unreachable!("as many as were added"));
    Some((cluster, nodes))
}

/// Starts a thread whose commands run as this policy says.
pub async fn start_thread(cluster: &Cluster, client: &Peer, policy: &str) -> String {
    start_thread_with(client, json!({ "cwd": cluster.work(), "approvalPolicy": policy })).await
}

pub async fn start_thread_with(client: &Peer, params: Value) -> String {
    let started = client.request("thread/start", params).await.expect("a thread");
    started["thread"]["id"].as_str().unwrap().to_owned()
}

/// A client of a node that is subscribed to a thread of another one. The thread has a turn already: threads that have
/// none are known to their node only.
pub async fn subscribed(node: &ClusterNode, thread: &str) -> WsConnection {
    let client = node.connect().await;
    client.request("thread/resume", json!({ "threadId": thread })).await.expect("it is resumed on another node");
    client
}

/// A thread that is owned by the first node and had one turn, with a client of each of two nodes.
pub async fn shared_thread(
    cluster: &Cluster,
    model: &ScriptedModel,
    owner: &ClusterNode,
    other: &ClusterNode,
    policy: &str,
) -> (WsConnection, WsConnection, String) {
    let first = owner.connect().await;
    let thread = start_thread(cluster, &first, policy).await;
    model.reply(loomd_testkit::model::message("ready"));
    first.run_turn(&thread, "get ready").await;
    let second = subscribed(other, &thread).await;
    (first, second, thread)
}

pub fn start_params(thread: &str, text: &str, key: &str) -> Value {
    json!({ "threadId": thread, "input": [{ "type": "text", "text": text }], "clientUserMessageId": key })
}

pub async fn until<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waited).await.unwrap_or_else(|_| panic!("no {what}"))
}

pub async fn turns(client: &Peer, thread: &str) -> Vec<Value> {
    let read = client.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await;
    read.expect("it can be read")["thread"]["turns"].as_array().cloned().unwrap_or_default()
}

/// The turns of a thread once all of them have ended.
pub async fn ended(client: &Peer, thread: &str) -> Vec<Value> {
    until("end of the turns", async || {
        let turns = turns(client, thread).await;
        turns.iter().all(|turn| turn["status"] != "inProgress").then_some(turns)
    })
    .await
}

/// The texts of a turn's items of one type.
pub fn texts(turn: &Value, kind: &str) -> Vec<String> {
    let items = turn["items"].as_array().unwrap().iter().filter(|item| item["type"] == kind);
    items.map(|item| item["text"].as_str().or(item["content"][0]["text"].as_str()).unwrap_or_default().into()).collect()
}

/// Arguments of a command that counts itself, names its process, and blocks until [`let_go`].
pub fn counted(cluster: &Cluster) -> Value {
    let file = |name: &str| cluster.work().join(name).display().to_string();
    let script = format!("echo $$ >> {}; until test -e {}; do sleep 0.02; done; echo over", file("runs"), file("go"));
    json!({ "command": script, "login": false })
}

/// Lets commands of [`counted`] end.
pub fn let_go(cluster: &Cluster) {
    std::fs::write(cluster.work().join("go"), "").unwrap();
}

/// The processes that commands of [`counted`] were run in, so far.
pub fn runs(cluster: &Cluster) -> Vec<u32> {
    let text = std::fs::read_to_string(cluster.work().join("runs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

pub async fn until_it_runs(cluster: &Cluster) -> u32 {
    until("command", async || runs(cluster).first().copied()).await
}

/// Starts a turn with a command, and waits until it runs and the clients, the first of which starts the turn, are shown
/// it. Its process. After the command the model says "I see".
pub async fn command_of_a_turn(
    cluster: &Cluster,
    model: &ScriptedModel,
    thread: &str,
    clients: [&WsConnection; 2],
) -> u32 {
    model.reply(function_call("shell_command", counted(cluster), "c1")).reply(message("I see"));
    clients[0].start_turn(thread, "go").await;
    let command = until_it_runs(cluster).await;
    for client in clients {
        client.notification_where("item/started", |params| params["item"]["id"] == "c1").await;
    }
    command
}

pub fn event_id(message: &Value) -> u128 {
    message["eventId"].as_str().expect("an event id is a string").parse().expect("an event id is a decimal number")
}

/// The epoch in an event's id.
pub fn epoch(message: &Value) -> u64 {
    u64::try_from(event_id(message) >> 64).unwrap()
}

/// What a client has received about a thread: events, and what it was sent in their place when the thread has moved to
/// another node, which has no event ids.
fn received(client: &Peer, thread: &str) -> Vec<Value> {
    let is_of = |message: &Value| {
        let params = &message["params"];
        message.get("method").is_some() && (params["threadId"] == thread || params["thread"]["id"] == thread)
    };
    client.messages().into_iter().filter(is_of).collect()
}

/// The events of a thread that a client has received.
pub fn events(client: &Peer, thread: &str) -> Vec<Value> {
    received(client, thread).into_iter().filter(|message| message.get("eventId").is_some()).collect()
}

/// Checks that a client got the events of a thread in order and once, and that every item that was started has
/// completed. Server requests that are open are sent again with their ids.
pub fn check_order(client: &Peer, thread: &str) {
    let events = events(client, thread);
    let ids: Vec<u128> = events.iter().filter(|event| event.get("id").is_none()).map(event_id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "events are out of order or repeated: {events:#?}");
    let received = received(client, thread);
    let items = |method: &str| -> Vec<Value> {
        let of_method = received.iter().filter(|message| message["method"] == method);
        of_method.map(|message| message["params"]["item"]["id"].clone()).collect()
    };
    let (started, completed) = (items("item/started"), items("item/completed"));
    // A thread that has moved may begin an item again that its former node had begun.
    let has_moved = events.iter().any(|event| epoch(event) != epoch(&events[0]));
    for item in started.iter().chain(&completed) {
        let times = |items: &[Value]| items.iter().filter(|other| *other == item).count();
        let (begun, ended) = (times(&started), times(&completed));
        let is_right = ended == 1 && (begun == 1 || (has_moved && begun == 2));
        assert!(is_right, "item {item} began {begun} times and completed {ended} times: {received:#?}");
    }
}

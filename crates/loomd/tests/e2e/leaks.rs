//! Closed connections and unloaded threads release their descriptors, memory and processes.

use futures_util::future::join_all;
use loomd_testkit::model::{function_call, shell};
use loomd_testkit::{Home, ScriptedModel, WsServer, soak};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{initialized, launch, ping};

const MIB: usize = 1 << 20;
const AT_ONCE: usize = 50;

#[tokio::test]
async fn thousands_of_connections_leak_nothing() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let bystander = server.connect().await;
    bystander.initialize().await;

    // The index is opened at the first `thread/list`.
    bystander.request("thread/list", json!({})).await.expect("a list");
    let pid = server.pid();
    let descriptors = soak::open_descriptors(pid);

    // A warm-up: threads and memory are allocated on first use.
    every_kind(&server, 200).await;
    soak::settles("open descriptors", descriptors, || soak::open_descriptors(pid)).await;
    let threads = soak::threads(pid);
    let memory = resident(pid);

    close_politely(&server, 2_000).await;
    drop_without_a_word(&server, 200).await;
    drop_within_the_upgrade(&server, 200).await;

    soak::settles("open descriptors", descriptors, || soak::open_descriptors(pid)).await;
    soak::settles("threads", threads, || soak::threads(pid)).await;
    soak::settles("resident memory", memory + 4 * MIB, || resident(pid)).await;
    ping(&bystander).await;
}

async fn every_kind(server: &WsServer, count: usize) {
    close_politely(server, count).await;
    drop_without_a_word(server, count).await;
    drop_within_the_upgrade(server, count).await;
}

async fn close_politely(server: &WsServer, count: usize) {
    in_batches(count, async || {
        let client = server.connect().await;
        client.initialize().await;
        client.close().await;
        client.closed().await;
    })
    .await;
}

async fn drop_without_a_word(server: &WsServer, count: usize) {
    in_batches(count, async || {
        let client = server.connect().await;
        client.initialize().await;
        drop(client);
    })
    .await;
}

async fn drop_within_the_upgrade(server: &WsServer, count: usize) {
    in_batches(count, async || {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: webs").await.unwrap();
    })
    .await;
}

async fn in_batches(count: usize, each: impl AsyncFn()) {
    for _ in 0..count / AT_ONCE {
        join_all((0..AT_ONCE).map(|_| each())).await;
    }
}

#[tokio::test]
async fn turns_and_their_processes_leak_nothing() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"");
    let server = initialized(&home).await;
    let pid = server.pid();
    // A command that cannot start, one that stays, one that is stopped with its turn.
    let round = async || {
        let session = |arguments: serde_json::Value| function_call("exec_command", arguments, "call_s");
        model.reply(session(json!({ "cmd": "true", "login": false, "workdir": "/nowhere" })));
        model.reply(session(json!({ "cmd": "sleep 600", "login": false, "yield_time_ms": 1 })));
        model.reply(shell("sleep 600"));
        let thread = server.start_thread(Default::default()).await.id;
        let turn = server.start_turn(&thread, "go").await.id;
        let is_shell = |params: &serde_json::Value| params["turnId"] == *turn && params["item"]["source"] == "agent";
        server.notification_where("item/started", is_shell).await;
        server.request("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await.expect("it stops");
        server.turn_completed(&thread).await;
        server.request("thread/unsubscribe", json!({ "threadId": thread })).await.expect("it can be left");
        server.notification_where("thread/closed", |params| params["threadId"] == *thread).await;
    };
    for _ in 0..3 {
        round().await;
    }
    soak::settles("children", GUARD, || children(pid)).await;
    let (descriptors, memory) = (soak::open_descriptors(pid), resident(pid));
    for _ in 0..30 {
        round().await;
    }
    soak::settles("children", GUARD, || children(pid)).await;
    // A few connections to the provider are kept for the next turn.
    soak::settles("open descriptors", descriptors + 8, || soak::open_descriptors(pid)).await;
    soak::settles("resident memory", memory + 8 * MIB, || resident(pid)).await;
    ping(&server).await;
}

/// The process that kills commands after a SIGKILL of the server stays.
const GUARD: usize = 1;

/// Number of live child processes.
fn children(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    threads.map(|thread| of(thread).split_whitespace().count()).sum()
}

fn resident(pid: u32) -> usize {
    usize::try_from(soak::memory(pid).rss).unwrap()
}

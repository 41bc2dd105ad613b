//! Connections that come and go leave nothing behind, however they end.

use futures_util::future::join_all;
use loomd_testkit::{Home, WsServer, soak};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{launch, ping};

const MIB: usize = 1 << 20;
const AT_ONCE: usize = 50;

#[tokio::test]
async fn thousands_of_connections_leave_nothing_behind() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let bystander = server.connect().await;
    bystander.initialize().await;

    // The index is opened once, at the first look for a thread.
    bystander.request("thread/list", json!({})).await.expect("a list");
    let pid = server.pid();
    let descriptors = soak::open_descriptors(pid);

    // Threads and memory are taken as they are needed; once is enough.
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

fn resident(pid: u32) -> usize {
    usize::try_from(soak::memory(pid).rss).unwrap()
}

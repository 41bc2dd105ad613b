//! Pipelined requests of clients that read late: no response is lost or reordered.

use futures_util::{SinkExt, StreamExt};
use loomd_testkit::{Frame, Home};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::common::{exit_code, in_time, initialized, launch, ping_line, piped};

const INITIALIZE: &str =
    "{\"id\":0,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"late\",\"version\":\"1\"}}}\n";

#[tokio::test]
async fn requests_written_before_anything_is_read_are_answered_in_order() {
    let home = Home::empty();
    let mut server = piped(&home);
    let mut stdin = server.stdin.take().unwrap();
    let input = INITIALIZE.to_owned() + &pings(1..=20_000);
    in_time("end of a long write", stdin.write_all(input.as_bytes())).await.unwrap();

    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    for expected in 0..=20_000 {
        let line = in_time("answer", lines.next_line()).await.unwrap().expect("a line for each request");
        assert_eq!(id(&line), expected);
    }
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap(), None, "nothing is answered twice");
    assert_eq!(exit_code(&mut server).await, Some(0));
}

#[tokio::test]
async fn answers_of_many_megabytes_reach_a_client_that_reads_while_it_writes() {
    let home = Home::empty();
    let mut server = piped(&home);
    let mut stdin = server.stdin.take().unwrap();
    // The error for an unknown method lists all methods.
    let requests: String = (0..5_000).map(|id| format!("{{\"id\":{id},\"method\":\"unknown\"}}\n")).collect();
    let writing = async {
        stdin.write_all(requests.as_bytes()).await.unwrap();
        drop(stdin);
    };
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let reading = async {
        let mut ids = Vec::new();
        let mut bytes = 0;
        while let Some(line) = lines.next_line().await.unwrap() {
            bytes += line.len();
            ids.push(id(&line));
        }
        (ids, bytes)
    };
    let ((), (ids, bytes)) = in_time("end of the answers", async { tokio::join!(writing, reading) }).await;
    assert_eq!(ids, (0..5_000).collect::<Vec<i64>>());
    assert!(bytes > 8 << 20, "more than the server keeps unsent, got only {bytes} bytes");
    assert_eq!(exit_code(&mut server).await, Some(0));
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let home = Home::empty();
    let mut server = initialized(&home).await;
    server.send_raw(pings(1..=5_000)).await;
    server.close_stdin().await;
    server.closed().await;
    let ids: Vec<i64> = server.messages().iter().map(|message| message["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (0..=5_000).collect::<Vec<i64>>());
    assert_eq!(server.wait_exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_websocket_client_may_read_late() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let mut socket = server.connect_raw("/", &[]).await;
    socket.feed(Frame::text(INITIALIZE)).await.unwrap();
    for id in 1..=5_000 {
        socket.feed(Frame::text(ping_line(&id.to_string()))).await.unwrap();
    }
    socket.flush().await.unwrap();
    for expected in 0..=5_000 {
        let frame = in_time("answer", socket.next()).await.expect("a frame for each request").unwrap();
        assert_eq!(id(frame.to_text().unwrap()), expected);
    }
}

fn pings(ids: impl Iterator<Item = i64>) -> String {
    ids.map(|id| ping_line(&id.to_string())).collect()
}

fn id(line: &str) -> i64 {
    let message: Value = serde_json::from_str(line).expect("a message is JSON");
    message["id"].as_i64().unwrap_or_else(|| panic!("expected an answer, got {line}"))
}

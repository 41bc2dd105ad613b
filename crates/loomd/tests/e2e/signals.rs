//! Signals: how the server ends, and how it reloads its token.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use loomd_testkit::{CapturedOutput, Frame, Home, Launch, Signal, WsConnection, WsServer};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::common::{exit_code, initialized, launch, loomd, ping, send, until};

#[tokio::test]
async fn a_signal_ends_a_server_on_stdio_cleanly() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::empty();
        let mut server = initialized(&home).await;
        server.signal(signal);
        server.closed().await;
        assert_eq!(server.wait_exit().await.code(), Some(0), "{signal:?}");
    }
}

#[tokio::test]
async fn a_listener_closes_its_connections_with_a_code() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::empty();
        let mut server = launch().websocket(&home).await;
        let before_the_handshake = server.connect().await;
        let clients = [server.connect().await, server.connect().await];
        for client in &clients {
            client.initialize().await;
        }
        server.signal(signal);
        for client in clients.iter().chain([&before_the_handshake]) {
            assert_eq!(close_code(client).await, 1001, "{signal:?}");
            client.closed().await;
        }
        assert_eq!(server.wait_exit().await.code(), Some(0), "{signal:?}");
    }
}

async fn close_code(client: &WsConnection) -> u16 {
    match client.frame_where("close frame", Frame::is_close).await {
        Frame::Close(Some(close)) => close.code.into(),
        other => panic!("expected a close frame with a code, got {other:?}"),
    }
}

#[tokio::test]
async fn a_signal_does_not_wait_for_an_open_handshake() {
    let home = Home::empty();
    let mut server = launch().websocket(&home).await;
    let mut silent = tokio::net::TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    ping_after_handshake(&server).await;
    server.signal(Signal::TERM);
    assert_eq!(server.wait_exit().await.code(), Some(0));
}

#[tokio::test]
async fn two_signals_in_a_row_end_a_listener_cleanly() {
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::INT, Signal::TERM)] {
        let home = Home::empty();
        let mut server = launch().websocket(&home).await;
        let _client = ping_after_handshake(&server).await;
        server.signal(first);
        server.signal(second);
        assert_eq!(server.wait_exit().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_wait_for_a_client_that_does_not_read() {
    let home = Home::empty();
    let log = home.work().join("log");
    let logged = |text| std::fs::read_to_string(&log).unwrap().contains(text);
    let mut command = loomd(&home);
    command.arg("app-server").env("RUST_LOG", "info").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
    let stdin = server.stdin.as_mut().unwrap();
    let stdout = server.stdout.as_ref().unwrap();

    // A response larger than a pipe: its beginning is read while its end is not written.
    let client = json!({ "name": "deaf", "version": "1" });
    let initialize = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
    let echo = json!({ "value": "x".repeat(1 << 20) });
    let requests = [request("initialize", initialize), request("mock/experimentalMethod", echo)].concat();
    stdin.write_all(requests.as_bytes()).await.unwrap();
    until("beginning of the long answer", async || rustix::io::ioctl_fionread(stdout).unwrap() > 4096).await;

    send(Signal::TERM, &server);
    until("word of the first signal", async || logged("waiting for what is in progress")).await;
    send(Signal::TERM, &server);
    assert_eq!(exit_code(&mut server).await, Some(0));
    assert!(logged("stopping at once"));
}

fn request(method: &str, params: Value) -> String {
    format!("{}\n", json!({ "id": 1, "method": method, "params": params }))
}

#[tokio::test]
async fn sighup_makes_a_listener_reload_its_token() {
    let home = Home::empty();
    let file = home.write("token", "the-old-token");
    let server = guarded(&file).websocket(&home).await;
    let open = server.connect_to("/", &[("Authorization", "Bearer the-old-token")]).await;
    open.initialize().await;

    home.write("token", "the-new-token");
    assert_eq!(status(&server, "the-new-token").await, 401, "a changed file alone changes nothing");
    server.signal(Signal::HUP);
    until("door for the new token", async || status(&server, "the-new-token").await == 101).await;
    assert_eq!(status(&server, "the-old-token").await, 401);
    ping(&open).await;
}

#[tokio::test]
async fn sighup_keeps_the_token_if_its_file_is_unusable() {
    let home = Home::empty();
    let file = home.write("token", "the-token");
    let server = guarded(&file).websocket(&home).await;
    std::fs::remove_file(&file).unwrap();
    server.signal(Signal::HUP);
    until_logged(server.stderr(), "keeping the old websocket secret").await;
    assert_eq!(status(&server, "the-token").await, 101);
}

fn guarded(token_file: &Path) -> Launch {
    launch().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([token_file])
}

async fn status(server: &WsServer, token: &str) -> u16 {
    server.upgrade("/", &[("Authorization", &format!("Bearer {token}"))]).await.status
}

async fn ping_after_handshake(server: &WsServer) -> WsConnection {
    let client = server.connect().await;
    client.initialize().await;
    ping(&client).await;
    client
}

async fn until_logged(log: &CapturedOutput, text: &str) {
    until(text, async || log.text().contains(text)).await;
}

#[tokio::test]
async fn a_listener_handles_signals_once_it_prints_its_address() {
    let home = Home::empty();
    for _ in 0..20 {
        let mut server = launch().websocket(&home).await;
        server.signal(Signal::TERM);
        assert_eq!(server.wait_exit().await.code(), Some(0));
    }
}

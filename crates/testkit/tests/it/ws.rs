use futures_util::{SinkExt, StreamExt};
use loomd_testkit::{Frame, Home, Launch, Signal, Stream, WsConnection, WsServer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, UnixListener};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::panic_of;

async fn pair() -> (WsConnection, WebSocketStream<DuplexStream>) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let near: Box<dyn Stream> = Box::new(near);
    let near = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    (WsConnection::over(near), WebSocketStream::from_raw_socket(far, Role::Server, None).await)
}

/// A server that announces this port, on which the test listens.
async fn announcing(port: u16, home: &Home) -> WsServer {
    let script = format!("printf 'on: \\033[36mws://0.0.0.0:%s\\033[0m\\n' {port} >&2; exec sleep 1000");
    Launch::new("/bin/sh").args(["-c", &script]).websocket(home).await
}

#[tokio::test]
async fn messages_are_text_frames_both_ways() {
    let (client, mut far) = pair().await;
    let id = client.send_request("a", json!({})).await;
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::text(r#"{"method":"a","id":0,"params":{}}"#));
    far.send(Frame::text(r#"{"id":0,"result":true}"#)).await.unwrap();
    assert_eq!(client.response(&id).await, Ok(json!(true)));
    assert_eq!(client.frames(), [Frame::text(r#"{"id":0,"result":true}"#)]);
}

#[tokio::test]
async fn single_frames_can_be_sent_and_awaited() {
    let (client, mut far) = pair().await;
    client.send_frame(Frame::binary("bytes")).await;
    client.send_raw("not JSON").await;
    client.send_frame(Frame::Ping("p".into())).await;
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::binary("bytes"));
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::text("not JSON"));
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::Ping("p".into()));
    far.flush().await.unwrap();
    assert_eq!(client.frame_where("pong", Frame::is_pong).await, Frame::Pong("p".into()));
}

#[tokio::test]
async fn either_side_can_close() {
    let (client, mut far) = pair().await;
    client.close().await;
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::Close(None));
    assert!(far.next().await.is_none());
    drop(far);
    client.closed().await;

    let (client, mut far) = pair().await;
    far.close(None).await.unwrap();
    drop(far);
    client.closed().await;
    assert_eq!(client.frames(), [Frame::Close(None)]);
}

#[tokio::test]
async fn dropping_a_connection_sends_no_close_frame() {
    let (client, mut far) = pair().await;
    drop(client);
    assert!(far.next().await.unwrap().is_err());
}

#[tokio::test]
async fn a_binary_frame_from_the_server_fails_the_wait() {
    let words = panic_of(async {
        let (client, mut far) = pair().await;
        far.send(Frame::binary("x")).await.unwrap();
        client.notification("n").await
    })
    .await;
    assert!(words.starts_with("expected notification n, got no message: a binary frame of 1 bytes"), "{words}");
}

#[tokio::test]
async fn connections_go_to_the_announced_address() {
    let home = Home::empty();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = announcing(port, &home).await;
    assert_eq!(server.port(), port);

    let accepting = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let (client, mut far) = tokio::join!(server.connect(), accepting);
    client.send_raw("hi").await;
    assert_eq!(far.next().await.unwrap().unwrap(), Frame::text("hi"));

    server.signal(Signal::KILL);
    assert!(!server.wait_exit().await.success());
    assert_eq!(server.stdout().to_end().await, "");
}

#[tokio::test]
async fn http_requests_and_upgrades_return_status_and_body() {
    let home = Home::empty();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = announcing(listener.local_addr().unwrap().port(), &home).await;
    let answer = async |reply: &str| {
        let mut stream = listener.accept().await.unwrap().0;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(reply.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    };

    let (reply, head) = tokio::join!(
        server.http("GET", "/readyz", &[("X-One", "1")]),
        answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok-and-more"),
    );
    assert_eq!((reply.status, reply.text()), (200, "ok".into()));
    assert_eq!(head, "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-One: 1\r\n\r\n");

    let (reply, head) = tokio::join!(
        server.upgrade("/", &[("Origin", "http://localhost")]),
        answer("HTTP/1.1 403 Forbidden\r\nX-Why: origin\r\n\r\nto the end"),
    );
    assert_eq!((reply.status, reply.text()), (403, "to the end".into()));
    assert_eq!(reply.headers.get("x-why"), Some("origin"));
    for header in ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: ", "Origin: http://localhost"] {
        assert!(head.contains(header), "{head}");
    }

    let (reply, _) = tokio::join!(
        server.upgrade("/", &[]),
        answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
    );
    assert_eq!((reply.status, reply.text()), (101, String::new()));

    let (reply, _) = tokio::join!(
        server.http("GET", "/", &[]),
        answer("HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    );
    assert_eq!((reply.status, reply.text()), (400, "abc0123456789".into()));
}

#[tokio::test]
async fn path_and_headers_reach_the_upgrade_request() {
    let home = Home::empty();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = announcing(listener.local_addr().unwrap().port(), &home).await;
    let accepting = async {
        let mut stream = listener.accept().await.unwrap().0;
        let mut head = vec![0; 1024];
        let length = stream.read(&mut head).await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    };
    let asking = tokio::spawn(async move { server.connect_raw("/p?q=1", &[("Authorization", "Bearer t")]).await });
    let head = accepting.await;
    assert!(head.starts_with("GET /p?q=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer t\r\n"), "{head}");
    assert!(asking.await.is_err(), "a connection that closes instead of upgrading is a failure");
}

#[tokio::test]
async fn a_unix_socket_carries_websocket_frames() {
    let home = Home::empty();
    let socket = home.work().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let launch = Launch::new("/bin/sh").args(["-c", "exec sleep 1000"]);
    let server = launch.listen(&home, &format!("unix://{}", socket.display())).await;
    // The first connection only checks whether the server listens.
    drop(listener.accept().await.unwrap());
    let accepting = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let (client, mut far) = tokio::join!(server.connect(), accepting);
    far.send(Frame::text(r#"{"method":"n","params":1}"#)).await.unwrap();
    assert_eq!(client.notification("n").await, json!(1));
}

#[tokio::test]
async fn a_listener_that_exits_is_reported_with_its_stderr() {
    let fails = Launch::new("/bin/sh").args(["-c", "echo 'Error: address in use' >&2; exit 1"]);
    let tcp = fails.clone();
    let words = panic_of(async move { tcp.websocket(&Home::empty()).await }).await;
    assert_eq!(words, "the server exited without printing its address; stderr: Error: address in use");
    let words = panic_of(async move { fails.unix(&Home::empty()).await }).await;
    assert!(words.starts_with("the server exited instead of listening: "), "{words}");
}

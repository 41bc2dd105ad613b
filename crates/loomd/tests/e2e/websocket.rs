//! The websocket listener: authentication, frames, and isolation of clients.

use futures_util::SinkExt;
use loomd_protocol::{InitializeCapabilities, RequestId};
use loomd_testkit::{Frame, Home, WsConnection, WsServer};
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Piece;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::common::{PING, launch, ping, ping_line};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn http_requests_are_checked_in_order() {
    const ORIGIN: (&str, &str) = ("Origin", "http://127.0.0.1");
    let home = Home::empty();
    let token = home.write("token", "let-me-in");
    let guarded = launch().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([token]);
    let server = guarded.websocket(&home).await;
    for path in ["/readyz", "/healthz"] {
        for (method, headers, status) in [
            ("GET", [].as_slice(), 200),
            ("HEAD", &[], 200),
            ("GET", &[ORIGIN], 403),
            ("POST", &[ORIGIN], 403),
            ("POST", &[], 405),
            ("DELETE", &[], 405),
        ] {
            assert_eq!(answer(&server, method, path, headers).await, (status, String::new()), "{method} {path}");
        }
    }
    for (method, status, body) in
        [("POST", 405, "Request method must be `GET`"), ("GET", 400, "Connection header did not include 'upgrade'")]
    {
        assert_eq!(answer(&server, method, "/", &[]).await, (status, body.to_owned()), "{method}");
        assert_eq!(answer(&server, method, "/", &[ORIGIN]).await, (403, String::new()), "{method} with an origin");
    }
    let bearer = ("Authorization", "Bearer let-me-in");
    for (path, headers, status) in [
        ("/", [ORIGIN, bearer].as_slice(), 403),
        ("/", &[("Origin", ""), bearer], 403),
        ("/", &[("Sec-WebSocket-Version", "12")], 400),
        ("/", &[("Sec-WebSocket-Version", "12"), bearer], 400),
        ("/", &[], 401),
        ("/", &[("Authorization", "Bearer other")], 401),
        ("/", &[bearer], 101),
        ("/readyz/", &[], 401),
        ("/readyz/", &[bearer], 101),
        ("/any/path?with=a&query", &[bearer], 101),
    ] {
        assert_eq!(server.upgrade(path, headers).await.status, status, "{path} {headers:?}");
    }
}

async fn answer(server: &WsServer, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let reply = server.http(method, path, headers).await;
    (reply.status, reply.text())
}

#[tokio::test]
async fn an_accepted_upgrade_selects_no_subprotocol_or_extension() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let offers = [("Sec-WebSocket-Protocol", "a, b"), ("Sec-WebSocket-Extensions", "permessage-deflate")];
    let reply = server.upgrade("/", &offers).await;
    assert_eq!(reply.status, 101);
    for (name, _) in offers {
        assert_eq!(reply.headers.get(name), None);
    }
    assert_eq!(server.stdout().text(), "");
}

#[tokio::test]
async fn a_fragmented_message_with_control_frames_between_is_accepted() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = initialized(&server).await;
    let request = ping_line("\"in pieces\"");
    let (first, rest) = request.split_at(20);
    let (second, third) = rest.split_at(1);
    client.send_frame(piece(first, Data::Text, false)).await;
    client.send_frame(Frame::Ping("between".into())).await;
    client.send_frame(piece(second, Data::Continue, false)).await;
    client.send_frame(piece("", Data::Continue, false)).await;
    client.send_frame(piece(third, Data::Continue, true)).await;
    client.response(&RequestId::String("in pieces".into())).await.expect("a ping succeeds");
    client.frame_where("pong", |frame| *frame == Frame::Pong("between".into())).await;
}

#[tokio::test]
async fn frames_that_carry_no_message_are_ignored() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = initialized(&server).await;
    let request = ping_line("\"stray\"");
    let frames = [
        Frame::binary(request.clone()),
        Frame::binary(""),
        Frame::text(""),
        Frame::text("\n"),
        Frame::text("garbage"),
        Frame::text(format!("[{request}]")),
        Frame::text(format!("{request}{request}")),
        Frame::text(format!("\u{feff}{request}")),
        Frame::Pong("unasked".into()),
    ];
    for frame in &frames {
        client.send_frame(frame.clone()).await;
        ping(&client).await;
    }
    assert_eq!(client.messages().len(), 1 + frames.len());

    // Within a frame a line end is white space.
    client.send_raw(request.replace(',', "\n,\r\n")).await;
    client.response(&RequestId::String("stray".into())).await.expect("a ping succeeds");
}

#[tokio::test]
async fn a_ping_is_answered_with_its_own_payload() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = server.connect().await;
    for payload in ["", "p", &"x".repeat(125)] {
        client.send_frame(Frame::Ping(payload.to_owned().into())).await;
        client.frame_where("pong", |frame| *frame == Frame::Pong(payload.to_owned().into())).await;
    }
}

#[tokio::test]
async fn a_close_is_answered_with_a_close() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    for handshake in [true, false] {
        let client = server.connect().await;
        if handshake {
            client.initialize().await;
        }
        client.close().await;
        client.closed().await;
        assert!(client.frames().iter().any(Frame::is_close), "got only {:?}", client.frames());
    }
}

#[tokio::test]
async fn requests_before_a_close_are_answered_before_it() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let mut socket = server.connect_raw("/", &[]).await;
    let initialize =
        json!({ "id": 0, "method": "initialize", "params": { "clientInfo": { "name": "a", "version": "1" } } });
    socket.feed(Frame::text(initialize.to_string())).await.unwrap();
    for id in 1..=20 {
        socket.feed(Frame::text(ping_line(&id.to_string()))).await.unwrap();
    }
    socket.feed(Frame::Close(None)).await.unwrap();
    socket.flush().await.unwrap();
    let client = WsConnection::over(socket);
    client.closed().await;
    let answered: Vec<i64> = client.messages().iter().filter_map(|message| message["id"].as_i64()).collect();
    assert_eq!(answered, (0..=20).collect::<Vec<_>>());
    assert!(client.frames().iter().any(Frame::is_close));
}

#[tokio::test]
async fn a_protocol_violation_closes_only_its_own_connection() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let bystander = initialized(&server).await;
    let too_large_a_message = [
        vec![piece("\"", Data::Text, false)],
        vec![piece("x".repeat(16 * MIB - 1), Data::Continue, false); 4],
        vec![piece("xxxx\"", Data::Continue, true)],
    ];
    for (what, frames) in [
        ("a frame above 16 MiB", vec![Frame::text(" ".repeat(16 * MIB + 1))]),
        ("a message above 64 MiB", too_large_a_message.concat()),
        ("text that is not UTF-8", vec![piece(b"{\"id\":1,\"method\":\"\xff\"}", Data::Text, true)]),
        ("a piece of nothing", vec![piece("x", Data::Continue, true)]),
        ("a message within a message", vec![piece("{", Data::Text, false), piece("{}", Data::Text, true)]),
        ("a reserved opcode", vec![piece("{}", Data::Reserved(3), true)]),
    ] {
        let client = initialized(&server).await;
        for frame in frames {
            client.send_frame(frame).await;
        }
        client.closed().await;
        assert_eq!(client.messages().len(), 1, "{what} gets no reply");
        ping(&bystander).await;
    }
    let newcomer = initialized(&server).await;
    ping(&newcomer).await;
}

#[tokio::test]
async fn a_frame_of_the_largest_size_is_served() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = initialized(&server).await;
    let mut request = ping_line("\"padded\"");
    request += &" ".repeat(16 * MIB - request.len());
    client.send_raw(request).await;
    client.response(&RequestId::String("padded".into())).await.expect("a ping succeeds");
}

#[tokio::test]
async fn the_same_id_on_two_connections_is_two_requests() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let (first, second) = (initialized(&server).await, initialized(&server).await);
    first.send(&json!({ "id": "same", "method": PING, "params": {} })).await;
    second.send(&json!({ "id": "same", "method": "configRequirements/read" })).await;
    let id = RequestId::String("same".into());
    assert_eq!(first.response(&id).await, Ok(json!({ "data": [], "nextCursor": null })));
    assert_eq!(second.response(&id).await, Ok(json!({ "requirements": null })));
}

#[tokio::test]
async fn each_connection_has_its_own_opt_outs() {
    let home = Home::empty();
    home.write("config.toml", "broken = [");
    let server = launch().websocket(&home).await;
    let (told, untold, unrelated) = (server.connect().await, server.connect().await, server.connect().await);
    let without = |method: &str| InitializeCapabilities {
        opt_out_notification_methods: Some(vec![method.to_owned()]),
        ..Default::default()
    };
    untold.initialize_with(without("configWarning")).await;
    told.initialize().await;
    unrelated.initialize_with(without("configwarning")).await;
    for client in [&told, &untold, &unrelated] {
        ping(client).await;
    }
    let methods = [&told, &untold, &unrelated].map(|client| client.methods());
    assert_eq!(methods, [vec!["configWarning".to_owned()], vec![], vec!["configWarning".to_owned()]]);
}

async fn initialized(server: &WsServer) -> WsConnection {
    let client = server.connect().await;
    client.initialize().await;
    client
}

/// A single frame, which may be a fragment.
fn piece(payload: impl AsRef<[u8]>, data: Data, last: bool) -> Frame {
    Frame::Frame(Piece::message(payload.as_ref().to_vec(), OpCode::Data(data), last))
}

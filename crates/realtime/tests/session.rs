//! Sessions against a peer on this machine.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::HeaderMap;
use loomd_model::Http;
use loomd_realtime::{Closing, Connection, Event, Input, Kind, QueueFull, Session, SessionSettings, Version};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

type Peer = WebSocketStream<TcpStream>;

fn connection(port: u16, version: Version) -> Connection {
    Connection {
        url: format!("ws://127.0.0.1:{port}/v1/realtime"),
        headers: HeaderMap::new(),
        settings: SessionSettings { version, kind: Kind::Conversational, instructions: "be nice".into() },
        timeout: Duration::from_secs(10),
    }
}

/// An open session and the other side of its connection.
async fn open(version: Version) -> (Session, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut session = Session::open(Http::new(&|_| None), async move { Ok(connection(port, version)) });
    let (stream, _) = listener.accept().await.unwrap();
    let mut peer = tokio_tungstenite::accept_async(stream).await.unwrap();
    assert_eq!(read(&mut peer).await["type"], "session.update");
    assert_eq!(session.next().await, Some(Event::Started));
    (session, peer)
}

async fn read(peer: &mut Peer) -> Value {
    loop {
        match peer.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            _ => continue,
        }
    }
}

async fn send(peer: &mut Peer, event: Value) {
    peer.send(Message::text(event.to_string())).await.unwrap();
}

#[tokio::test]
async fn text_audio_and_events_pass_in_both_directions() {
    let (mut session, mut peer) = open(Version::V1).await;
    session.inputs().put(Input::Text("hi".into())).unwrap();
    assert_eq!(read(&mut peer).await["item"]["content"][0]["text"], "hi");
    session.append_audio("AAAA".into());
    assert_eq!(read(&mut peer).await, json!({ "type": "input_audio_buffer.append", "audio": "AAAA" }));
    send(&mut peer, json!({ "type": "nonsense" })).await;
    send(&mut peer, json!({ "type": "conversation.item.added", "item": 1 })).await;
    assert_eq!(session.next().await, Some(Event::Item(json!(1))));
}

#[tokio::test]
async fn a_session_that_is_dropped_closes_its_connection() {
    let (session, mut peer) = open(Version::V2).await;
    drop(session);
    assert!(matches!(peer.next().await, Some(Ok(Message::Close(_)))));
}

#[tokio::test]
async fn a_peer_that_hangs_up_ends_the_session() {
    let (mut session, mut peer) = open(Version::V1).await;
    peer.close(None).await.unwrap();
    assert_eq!(session.next().await, Some(Event::Closed(Closing::Transport)));
    assert_eq!(session.next().await, None);
    // Inputs for a session that is over are dropped.
    assert_eq!(session.inputs().put(Input::Text("late".into())), Ok(()));

    let (mut session, peer) = open(Version::V1).await;
    drop(peer);
    assert_eq!(session.next().await, Some(Event::Closed(Closing::Transport)));
}

#[tokio::test]
async fn an_error_or_a_binary_message_ends_the_session_with_its_reason() {
    let (mut session, mut peer) = open(Version::V2).await;
    send(&mut peer, json!({ "type": "error", "error": { "message": "bad" } })).await;
    assert_eq!(session.next().await, Some(Event::Closed(Closing::Error("bad".into()))));
    assert!(matches!(peer.next().await, Some(Ok(Message::Close(_)))));

    let (mut session, mut peer) = open(Version::V2).await;
    peer.send(Message::binary(vec![0])).await.unwrap();
    let reason = "unexpected binary realtime websocket event".to_owned();
    assert_eq!(session.next().await, Some(Event::Closed(Closing::Error(reason))));
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_says_why() {
    let check = async |opening: Result<Connection, String>, expected: &str| {
        let mut session = Session::open(Http::new(&|_| None), async { opening });
        let Some(Event::NotStarted(message)) = session.next().await else { panic!("it started") };
        assert!(message.contains(expected), "{message}");
        assert_eq!(session.next().await, None);
    };
    check(Err("no key".into()), "no key").await;
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    check(Ok(connection(unused, Version::V1)), "refused").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = Connection {
        timeout: Duration::from_millis(50),
        ..connection(listener.local_addr().unwrap().port(), Version::V1)
    };
    check(Ok(silent), "no connection within 50 ms").await;
}

#[tokio::test]
async fn what_waits_for_a_connection_is_bounded() {
    let session = Session::open(Http::new(&|_| None), std::future::pending());
    let mut queued = 0;
    while session.inputs().put(Input::Text("x".into())).is_ok() {
        queued += 1;
    }
    assert_eq!(queued, 256);
    let session = Session::open(Http::new(&|_| None), std::future::pending());
    let large = || Input::Text("x".repeat(5 * 1024 * 1024));
    assert_eq!(session.inputs().put(large()), Ok(()));
    assert_eq!(session.inputs().put(large()), Err(QueueFull));
    for _ in 0..1000 {
        session.append_audio("x".repeat(100_000));
    }
}

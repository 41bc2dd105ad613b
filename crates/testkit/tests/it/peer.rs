use loomd_protocol::{RequestId, RpcError, ThreadLoadedListParams, call};
use loomd_testkit::Peer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::panic_of;

/// The server's end: reads lines, and writes what the test sends.
struct ServerEnd(BufReader<DuplexStream>);

impl ServerEnd {
    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.0.read_line(&mut line).await.expect("memory can be read");
        (length > 0).then(|| serde_json::from_str(&line).expect("a line must be JSON"))
    }

    async fn send_line(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).await.expect("memory can be written");
    }
}

fn pair() -> (Peer, ServerEnd) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(near);
    (Peer::over_lines(reader, writer), ServerEnd(BufReader::new(far)))
}

#[tokio::test]
async fn responses_in_any_order_complete_their_requests() {
    let (peer, mut far) = pair();
    let answering = async {
        let (first, second) = (far.line().await, far.line().await);
        assert_eq!(first, Some(json!({ "method": "a", "id": 0, "params": { "x": 1 } })));
        assert_eq!(second, Some(json!({ "method": "b", "id": 1, "params": null })));
        far.send_line(r#"{"id":1,"error":{"code":-32600,"message":"no"}}"#).await;
        far.send_line(r#"{"id":"0","result":"another id"}"#).await;
        far.send_line(r#"{"id":0,"result":[1]}"#).await;
    };
    let (a, b, ()) = tokio::join!(peer.request("a", json!({ "x": 1 })), peer.request("b", Value::Null), answering);
    assert_eq!(a, Ok(json!([1])));
    assert_eq!(b, Err(RpcError::invalid_request("no")));
}

#[tokio::test]
async fn a_typed_call_encodes_params_and_decodes_the_result() {
    let (peer, mut far) = pair();
    far.send_line(r#"{"id":0,"result":{"data":["t1"],"nextCursor":null}}"#).await;
    let loaded = peer.call::<call::ThreadLoadedList>(ThreadLoadedListParams::default()).await.unwrap();
    assert_eq!(loaded.data, ["t1"]);
    assert_eq!(far.line().await.unwrap()["method"], "thread/loaded/list");
}

#[tokio::test]
async fn a_request_can_be_sent_now_and_awaited_later() {
    let (peer, mut far) = pair();
    let id = peer.send_request("a", json!({})).await;
    assert_eq!(id, RequestId::Integer(0));
    far.send_line(r#"{"id":0,"result":{}}"#).await;
    assert_eq!(peer.response(&id).await, Ok(json!({})));
}

#[tokio::test]
async fn each_notification_is_returned_once_and_stays_recorded() {
    let (peer, mut far) = pair();
    for line in [
        r#"{"method":"n","params":{"i":1}}"#,
        r#"{"method":"n","id":7,"params":{"i":2}}"#,
        r#"{"method":"n","params":{"i":3}}"#,
        r#"{"method":"other"}"#,
    ] {
        far.send_line(line).await;
    }
    assert_eq!(peer.notification_where("n", |params| params["i"] == 3).await, json!({ "i": 3 }));
    assert_eq!(peer.notification("n").await, json!({ "i": 1 }));
    assert_eq!(peer.notification("other").await, Value::Null);
    assert_eq!(peer.server_request("n").await, (RequestId::Integer(7), json!({ "i": 2 })));
    assert_eq!(peer.notifications("n"), [json!({ "i": 1 }), json!({ "i": 3 })]);
    assert_eq!(peer.methods(), ["n", "n", "n", "other"]);
    assert_eq!(peer.messages()[3], json!({ "method": "other" }));
}

#[tokio::test]
async fn server_requests_are_answered_with_their_id() {
    let (peer, mut far) = pair();
    far.send_line(r#"{"method":"ask","id":"x","params":{}}"#).await;
    let (id, _) = peer.server_request("ask").await;
    peer.respond(&id, json!({ "decision": "accept" })).await;
    peer.respond_error(&id, RpcError::internal("oh")).await;
    assert_eq!(far.line().await, Some(json!({ "id": "x", "result": { "decision": "accept" } })));
    assert_eq!(far.line().await, Some(json!({ "id": "x", "error": { "code": -32603, "message": "oh" } })));
}

#[tokio::test]
async fn raw_bytes_are_sent_unchanged() {
    let (peer, mut far) = pair();
    peer.send_raw("{\"method\":").await;
    peer.send_raw(b"\"split\"}\r\n".to_vec()).await;
    peer.notify("whole", Some(json!([]))).await;
    peer.send(&json!({ "any": "thing" })).await;
    peer.close().await;
    assert_eq!(far.line().await, Some(json!({ "method": "split" })));
    assert_eq!(far.line().await, Some(json!({ "method": "whole", "params": [] })));
    assert_eq!(far.line().await, Some(json!({ "any": "thing" })));
    assert_eq!(far.line().await, None);
}

#[tokio::test]
async fn the_handshake_is_a_request_and_a_notification() {
    let (peer, mut far) = pair();
    far.send_line(
        r#"{"id":0,"result":{"userAgent":"u","codexHome":"/h","platformFamily":"unix","platformOs":"linux"}}"#,
    )
    .await;
    assert_eq!(peer.initialize().await.user_agent, "u");
    assert_eq!(far.line().await.unwrap()["params"]["capabilities"], json!({ "experimentalApi": true }));
    assert_eq!(far.line().await, Some(json!({ "method": "initialized" })));
}

#[tokio::test]
async fn a_peer_can_be_shared_between_tasks() {
    let (peer, mut far) = pair();
    let other = peer.clone();
    let waiting = tokio::spawn(async move { (other.request("a", json!({})).await, other.notification("n").await) });
    far.line().await;
    far.send_line(r#"{"id":0,"result":1}"#).await;
    far.send_line(r#"{"method":"n","params":2}"#).await;
    assert_eq!(waiting.await.unwrap(), (Ok(json!(1)), json!(2)));
    assert_eq!(peer.messages().len(), 2);
}

#[tokio::test]
async fn cleared_messages_are_gone_and_later_ones_found() {
    let (peer, mut far) = pair();
    far.send_line(r#"{"method":"old"}"#).await;
    peer.notification("old").await;
    peer.clear();
    far.send_line(r#"{"method":"new"}"#).await;
    peer.notification("new").await;
    assert_eq!(peer.methods(), ["new"]);
}

#[tokio::test]
async fn dropping_the_peer_closes_the_connection() {
    let (peer, mut far) = pair();
    drop(peer);
    assert_eq!(far.line().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_names_the_expected_and_the_received_messages() {
    let words = panic_of(async {
        let (peer, mut far) = pair();
        for line in [r#"{"method":"n"}"#, r#"{"method":"ask","id":1}"#, r#"{"id":5,"result":1}"#] {
            far.send_line(line).await;
        }
        peer.notification("turn/completed").await
    })
    .await;
    assert_eq!(
        words,
        "no notification turn/completed within 60s; seen so far (3): [n, ask (request 1), response to 5]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_fails_the_send() {
    let words = panic_of(async {
        let (near, _far) = tokio::io::duplex(8);
        let (reader, writer) = tokio::io::split(near);
        Peer::over_lines(reader, writer).request("a", json!({})).await
    })
    .await;
    assert_eq!(words, "the server did not read its input for 60s; seen so far (0): []");
}

#[tokio::test]
async fn a_closed_connection_fails_the_wait() {
    let words = panic_of(async {
        let (peer, far) = pair();
        drop(far);
        peer.request("thread/start", json!({})).await
    })
    .await;
    assert_eq!(words, "the server ended the connection before answer to thread/start with id 0; seen so far (0): []");
}

#[tokio::test]
async fn an_invalid_line_fails_every_later_wait() {
    let words = panic_of(async {
        let (peer, mut far) = pair();
        far.send_line("Hello!").await;
        far.send_line(r#"{"method":"n"}"#).await;
        peer.notification("m").await
    })
    .await;
    assert!(words.starts_with("expected notification m, got no message: not a JSON object"), "{words}");
    assert!(words.contains("Hello!"), "{words}");
}

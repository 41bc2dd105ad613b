//! Invalid input on stdin: the server answers what can be answered, ignores the rest and goes on.

use loomd_protocol::RequestId;
use loomd_testkit::{Home, Peer, Server, soak};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::common::{PING, exit_code, initialized, launch, loomd, ping, ping_line, piped};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_line_that_is_no_message_gets_no_answer() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let request = br#"{"id":"stray","method":"thread/loaded/list","params":{}}"#.as_slice();
    let lines = [
        b"".to_vec(),
        b" \t ".to_vec(),
        b"\r".to_vec(),
        b"\0".to_vec(),
        b"garbage".to_vec(),
        b"{".to_vec(),
        b"5".to_vec(),
        b"null".to_vec(),
        b"\"text\"".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        request[..request.len() - 1].to_vec(),
        [b"[", request, b"]"].concat(),
        [b"[", request, b",", request, b"]"].concat(),
        [request, request].concat(),
        [request, b" ", request].concat(),
        [request, b","].concat(),
        [b"\xef\xbb\xbf", request].concat(),
        [b"\xff", request].concat(),
        [request, b"\xc0\x80"].concat(),
        b"\xff\xfe{\0}\0".to_vec(),
        b"{\"id\":\"stray\",\"method\":\"thread/loaded/list\",\"params\":{\"cursor\":\"\xed\xa0\x80\"}}".to_vec(),
        br#"{"id":"stray","method":"thread/loaded/list","params":{"limit":NaN}}"#.to_vec(),
        br#"{'id':'stray','method':'thread/loaded/list','params':{}}"#.to_vec(),
        br#"{"id":"stray","method":5,"params":{}}"#.to_vec(),
        br#"{"id":"stray","method":null}"#.to_vec(),
        br#"{"id":"stray","method":"\ud800"}"#.to_vec(),
        br#"{"id":"stray","method":"thread/loaded/list","method":"thread/loaded/list"}"#.to_vec(),
        br#"{"id":"stray"}"#.to_vec(),
        br#"{"id":"stray","result":{}}"#.to_vec(),
        br#"{"id":"stray","error":{"code":-1,"message":"m"}}"#.to_vec(),
        br#"{"id":"stray","error":"m"}"#.to_vec(),
        br#"{"method":"initialized"}"#.to_vec(),
        br#"{"method":"no/such/notification","params":[1]}"#.to_vec(),
    ];
    for line in &lines {
        server.send_raw([line, b"\n".as_slice()].concat()).await;
        ping(&server).await;
    }
    assert_eq!(server.messages().len(), 1 + lines.len(), "the handshake and the pings are answered, nothing else is");
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let long = format!("\"{}\"", "i".repeat(MIB));
    for id in [
        r#""""#,
        r#""7""#,
        r#"" spaced out ""#,
        r#""quote \" backslash \\ newline \n nul \u0000 é 😀""#,
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        &long,
    ] {
        server.send_raw(ping_line(id)).await;
        let id: RequestId = serde_json::from_str(id).unwrap();
        server.response(&id).await.expect("a ping succeeds");
    }
}

#[tokio::test]
async fn a_request_without_a_usable_id_gets_no_answer() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let ids = [
        "null",
        "true",
        "7.0",
        "7.5",
        "1e3",
        "{}",
        "[]",
        "[7]",
        "9223372036854775808",
        "-9223372036854775809",
        "7,\"id\":7",
        "7,\"trace\":5",
        r#""\ud800""#,
    ];
    for id in ids {
        server.send_raw(ping_line(id)).await;
        ping(&server).await;
    }
    assert_eq!(server.messages().len(), 1 + ids.len());
}

#[tokio::test]
async fn a_request_that_does_not_decode_gets_the_reason() {
    let home = Home::empty();
    let server = initialized(&home).await;
    for (method, params, reason) in [
        (PING, json!("x"), r#"invalid type: string "x", expected struct ThreadLoadedListParams"#),
        (PING, json!(5), "invalid type: integer `5`, expected struct ThreadLoadedListParams"),
        (PING, json!({ "limit": "x" }), r#"invalid type: string "x", expected u32"#),
        (PING, json!({ "limit": -1 }), "invalid value: integer `-1`, expected u32"),
        (PING, json!({ "limit": 4_294_967_296_u64 }), "invalid value: integer `4294967296`, expected u32"),
        (PING, json!({ "limit": 1.0 }), "invalid type: floating point `1.0`, expected u32"),
        (PING, json!({ "cursor": {} }), "invalid type: map, expected a string"),
        ("thread/read", json!({}), "missing field `threadId`"),
        ("thread/read", json!({ "threadId": null }), "invalid type: null, expected a string"),
        ("thread/read", Value::Null, "missing field `params`"),
        ("initialize", json!({}), "missing field `clientInfo`"),
    ] {
        assert_refused(&server, method, params, &format!("Invalid request: {reason}")).await;
    }
    for method in ["", "nope", "Thread/Loaded/List", "thread/loaded/list ", "é\n\"`"] {
        let error = server.request(method, json!({})).await.expect_err("there is no such method");
        let start =
            format!("Invalid request: unknown variant `{method}`, expected one of `initialize`, `thread/start`, ");
        assert!(error.message.starts_with(&start), "{error:?}");
    }
    let again = json!({ "clientInfo": { "name": "again", "version": "1" } });
    assert_refused(&server, "initialize", again, "Already initialized").await;
    ping(&server).await;
}

async fn assert_refused(server: &Peer, method: &str, params: Value, message: &str) {
    let error = server.request(method, params).await.expect_err("a refusal");
    assert_eq!((error.code, error.message.as_str(), error.data), (-32600, message, None));
}

#[tokio::test]
async fn deeply_nested_json_is_refused() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let open = "[".repeat(1_000_000);
    let close = "]".repeat(1_000_000);
    let objects = "{\"a\":".repeat(1_000_000);
    server.send_raw(format!("{open}\n{objects}\n{open}{close}\n")).await;
    ping(&server).await;
    assert_eq!(server.messages().len(), 2, "what is no message is not answered");

    server.send_raw(format!("{{\"id\":\"deep\",\"method\":\"{PING}\",\"params\":{open}{close}}}\n")).await;
    let error = server.response(&RequestId::String("deep".into())).await.expect_err("nested too deeply");
    assert_eq!((error.code, error.message.as_str()), (-32600, "Invalid request: recursion limit exceeded"));

    // Unknown members are skipped without decoding them.
    server.send_raw(format!("{{\"x\":{open}{close},\"id\":\"beside\",\"method\":\"{PING}\",\"params\":{{}}}}\n")).await;
    server.response(&RequestId::String("beside".into())).await.expect("a ping succeeds");
}

#[tokio::test]
async fn a_line_of_100_megabytes_is_handled_like_any_other() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let before = soak::memory(server.pid()).rss;
    send_long(&server, r#"{"id":"long","method":"thread/loaded/list","params":{"cursor":""#, 100, "\"}}\n").await;
    server.response(&RequestId::String("long".into())).await.expect("a long request succeeds");
    send_long(&server, "", 100, "\n").await;
    ping(&server).await;
    assert_eq!(server.messages().len(), 3, "garbage is not answered");
    assert_memory_is_back(&server, before).await;
}

#[tokio::test]
async fn a_line_above_the_limit_is_refused_by_its_id_and_its_memory_freed() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let before = soak::memory(server.pid()).rss;
    send_long(&server, r#"{"id":"first","method":"thread/loaded/list","params":{"cursor":""#, 257, "\"}}\n").await;
    let error = server.response(&RequestId::String("first".into())).await.expect_err("too long");
    assert_eq!((error.code, error.message.as_str()), (-32600, "message is too long: limit is 268435456 bytes"));
    send_long(&server, r#"{"params":{"cursor":""#, 257, "\"},\"id\":\"last\",\"method\":\"thread/loaded/list\"}\n")
        .await;
    ping(&server).await;
    assert_eq!(server.messages().len(), 3, "an id behind the limit is not found");
    assert_memory_is_back(&server, before).await;
}

/// Sends a line in chunks, with this many mebibytes of text in its middle.
async fn send_long(server: &Peer, head: &str, mebibytes: usize, tail: &str) {
    server.send_raw(head).await;
    for _ in 0..mebibytes {
        server.send_raw(vec![b'x'; MIB]).await;
    }
    server.send_raw(tail).await;
}

async fn assert_memory_is_back(server: &Server, before: u64) {
    let limit = usize::try_from(before).unwrap() + 16 * MIB;
    let resident = || usize::try_from(soak::memory(server.pid()).rss).unwrap();
    soak::settles("the resident memory", limit, resident).await;
}

#[tokio::test]
async fn the_last_line_needs_no_newline() {
    let home = Home::empty();
    let mut server = initialized(&home).await;
    server.send_raw(ping_line("\"last\"").trim_end()).await;
    server.close_stdin().await;
    server.response(&RequestId::String("last".into())).await.expect("a ping succeeds");
    assert_eq!(server.wait_exit().await.code(), Some(0));
}

#[tokio::test]
async fn input_that_ends_within_a_message_ends_the_server_with_status_0() {
    for input in ["", "{\"id\":1,\"meth", "[", "\u{feff}"] {
        let home = Home::empty();
        let mut server = launch().stdio(&home);
        server.send_raw(input).await;
        server.close_stdin().await;
        server.closed().await;
        assert_eq!((server.messages(), server.wait_exit().await.code()), (vec![], Some(0)), "{input:?}");
    }
}

#[tokio::test]
async fn the_server_ends_when_its_client_closes_stdout() {
    let home = Home::empty();
    let mut server = piped(&home);
    drop(server.stdout.take());
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(ping_line("1").as_bytes()).await.unwrap();
    assert_eq!(exit_code(&mut server).await, Some(0), "although stdin is still open");
}

#[tokio::test]
async fn a_closed_stderr_does_not_end_the_server() {
    let home = Home::empty();
    let mut server = piped(&home);
    drop(server.stderr.take());
    let peer = Peer::over_lines(server.stdout.take().unwrap(), server.stdin.take().unwrap());
    peer.initialize().await;
    peer.send_raw("garbage that is logged\n").await;
    ping(&peer).await;
    peer.close().await;
    assert_eq!(exit_code(&mut server).await, Some(0));
}

#[tokio::test]
async fn non_blocking_pipes_work() {
    let home = Home::empty();
    let (stdin, mut to_server) = std::io::pipe().unwrap();
    let (mut from_server, stdout) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&stdin, true).unwrap();
    rustix::io::ioctl_fionbio(&stdout, true).unwrap();
    let mut server = loomd(&home).arg("app-server").stdin(stdin).stdout(stdout).spawn().unwrap();
    // Far more than the pipes hold, before anything is read.
    let requests: String = (0..5_000).map(|id| ping_line(&id.to_string())).collect();
    std::io::Write::write_all(&mut to_server, requests.as_bytes()).unwrap();
    drop(to_server);
    let mut answers = String::new();
    std::io::Read::read_to_string(&mut from_server, &mut answers).unwrap();
    assert_eq!(answers.lines().count(), 5_000);
    assert_eq!(exit_code(&mut server).await, Some(0));
}

//! HTTP servers, each answer of which is written down.

use std::sync::Arc;

use loomd_mcp::{CallError, StartError};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Thread, call, http_config, servers, text};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;

type Answer = dyn Fn(&str, usize) -> String + Send + Sync;

/// A server that answers a request with `answer(request, how many came before)`; the requests, head and body, are kept.
async fn serve(answer: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, answer): (_, Arc<Answer>) = (Arc::clone(&requests), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(exchange(stream, Arc::clone(&kept), Arc::clone(&answer)));
        }
    });
    (url, requests)
}

async fn exchange(mut stream: TcpStream, kept: Arc<Mutex<Vec<String>>>, answer: Arc<Answer>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap_or_default().parse::<usize>().unwrap_or(0));
            if body.len() >= length {
                let before = kept.lock().len();
                kept.lock().push(text.clone());
                let _ = stream.write_all(answer(&text, before).as_bytes()).await;
                return;
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(length @ 1..) => bytes.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nmcp-session-id: s1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn json(body: &str) -> String {
    answer("200 OK", "application/json", body)
}

/// The id of a request.
fn id(request: &str) -> &str {
    request.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("0")
}

/// What a good server answers, but for calls.
fn good(request: &str, called: impl Fn(&str) -> String) -> String {
    match request {
        _ if request.starts_with("GET") => answer("405 Method Not Allowed", "text/plain", ""),
        _ if request.starts_with("DELETE") => answer("200 OK", "text/plain", ""),
        _ if request.contains("\"initialize\"") => json(INITIALIZED),
        _ if request.contains("tools/list") => {
            json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[{{"name":"t"}}]}}}}"#, id(request)))
        }
        _ if request.contains("tools/call") => called(request),
        _ => answer("202 Accepted", "text/plain", ""),
    }
}

fn done(request: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"done"}}]}}}}"#, id(request))
}

#[tokio::test]
async fn an_elicitation_on_the_stream_of_a_call_goes_to_its_thread() {
    let (url, requests) = serve(|request, _| {
        good(request, |request| {
            let ask = r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"mode":"url","message":"Visit","url":"https://x.test","elicitationId":"1"}}"#;
            answer("200 OK", "text/event-stream", &format!("data: {ask}\n\ndata: {}\n\n", done(request)))
        })
    })
    .await;
    let (server, thread) = (servers().get(&http_config(url)), Thread::new("a"));
    let result = server.call_tool(call("t"), Arc::clone(&thread) as _).await.unwrap();
    assert_eq!(text(&result.content), "done");
    let answered = async {
        while !requests.lock().iter().any(|request| request.contains(r#""id":"e","result""#)) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), answered).await.expect("the elicitation is answered");
    assert_eq!(*thread.elicitations.lock(), ["Visit"]);
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_fails_the_call() {
    let (url, _) = serve(|request, _| good(request, |_| answer("200 OK", "text/event-stream", ": nothing\n\n"))).await;
    let failed = servers().get(&http_config(url)).call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert!(failed.to_string().contains("the stream ended before the answer came"), "{failed}");
}

#[tokio::test]
async fn an_unexpected_answer_fails_the_call_with_its_body() {
    let (url, _) = serve(|request, _| good(request, |_| answer("200 OK", "text/html", "<h1>proxy login</h1>"))).await;
    let failed = servers().get(&http_config(url)).call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert!(matches!(&failed, CallError::Transport(text) if text.contains("proxy login")), "{failed}");
    let (url, _) = serve(|request, _| good(request, |_| answer("500 Oh", "text/plain", "broken"))).await;
    let failed = servers().get(&http_config(url)).call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert!(failed.to_string().contains("500"), "{failed}");
}

#[tokio::test]
async fn a_large_json_answer_fails_the_call() {
    let (url, _) = serve(|request, _| good(request, |_| json(&"x".repeat(33 << 20)))).await;
    let failed = servers().get(&http_config(url)).call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert!(matches!(failed, CallError::TooLarge), "{failed}");
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_and_the_call_repeated() {
    let (url, requests) = serve(|request, before| {
        let forgotten = request.contains("tools/call") && before < 5;
        if forgotten { answer("404 Not Found", "text/plain", "") } else { good(request, |r| json(&done(r))) }
    })
    .await;
    let server = servers().get(&http_config(url));
    let result = server.call_tool(call("t"), Thread::new("a")).await.unwrap();
    assert_eq!(text(&result.content), "done");
    let count = |what: &str| requests.lock().iter().filter(|request| request.contains(what)).count();
    assert_eq!((count("\"initialize\""), count("tools/call")), (2, 2));
}

#[tokio::test]
async fn a_401_and_an_unreachable_server_are_told_apart() {
    let (url, _) = serve(|_, _| answer("401 Unauthorized", "text/plain", "")).await;
    let failed = servers().get(&http_config(url)).start().await.unwrap_err();
    assert!(matches!(failed, StartError::NotLoggedIn), "{failed}");
    assert_eq!(failed.message("web"), "The web MCP server is not logged in. Run `codex mcp login web`.");
    let failed = servers().get(&http_config("http://127.0.0.1:9/mcp".into())).start().await.unwrap_err();
    assert!(failed.to_string().contains("connection refused"), "{failed}");
    let failed = servers().get(&http_config("ftp://x/mcp".into())).start().await.unwrap_err();
    assert!(failed.to_string().contains("invalid url"), "{failed}");
}

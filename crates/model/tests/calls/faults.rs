//! Connections that break, stall or deliver garbage.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use loomd_config::config_toml::ModelProvider;
use loomd_model::ModelError;
use loomd_testkit::model::{
    Reply, added, error as refused, garbage, hang_up, message, rate_limited, server_error, streamed, text_delta,
};
use loomd_testkit::{Gate, ScriptedModel};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

use super::{call, config, error, request, session, texts};

const CLOSED: &str = "stream disconnected before completion: stream closed before response.completed";

async fn check(reply: Reply, expected: &str) -> ModelError {
    let model = ScriptedModel::start().await;
    model.reply(reply);
    let error = error(&config(&model)).await;
    assert_eq!(error.message().replace(&model.base_url(), "BASE"), expected);
    error
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error() {
    check(Reply::new().unfinished(), CLOSED).await;
    check(message("x").close(), CLOSED).await;
    check(text_delta("x").half(json!({ "type": "response.completed", "response": { "id": "r" } })).close(), CLOSED)
        .await;
    check(Reply::new().bytes("data: {\"type\":\"resp").unfinished(), CLOSED).await;
}

#[tokio::test]
async fn a_closed_connection_is_an_error_that_names_the_url() {
    let sending = "stream disconnected before completion: error sending request for url (BASE/responses)";
    for reply in [hang_up(), garbage("hello\r\n\r\n"), garbage("HTTP/1.1 200 OK\r\nconte")] {
        let error = check(reply, sending).await;
        assert!(error.retryable() && error.details("p").is_some(), "{error:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_not_retryable_and_names_address_and_remedy() {
    let model = ScriptedModel::start().await;
    let closed_port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed = ModelProvider { base_url: Some(format!("http://{closed_port}/v1")), ..config(&model) };
    let error = error(&closed).await;
    let words = format!(
        "error sending request for url (http://{closed_port}/v1/responses): connection refused by {closed_port}"
    );
    assert_eq!(error.message(), format!("stream disconnected before completion: {words}"));
    let details = error.details("Scripted").unwrap();
    assert!(details.starts_with("provider `Scripted` cannot be reached: check that its server runs"), "{details}");
    assert!(!error.retryable());
}

#[tokio::test]
async fn an_unknown_host_is_not_retryable_and_named() {
    let model = ScriptedModel::start().await;
    let nowhere = ModelProvider { base_url: Some("http://no-such-host.invalid/v1".into()), ..config(&model) };
    let error = error(&nowhere).await;
    assert!(error.message().contains("no address for host `no-such-host.invalid`"), "{error}");
    assert!(!error.retryable());
}

#[tokio::test]
async fn an_invalid_base_url_is_not_retried() {
    let model = ScriptedModel::start().await;
    for base in ["not a url", "http://", ""] {
        let bad = ModelProvider { base_url: Some(base.into()), ..config(&model) };
        let error = error(&bad).await;
        assert!(matches!(error, ModelError::Unsupported(_) | ModelError::Unreachable { .. }), "{base}: {error:?}");
    }
}

#[tokio::test]
async fn garbage_between_events_is_ignored() {
    let model = ScriptedModel::start().await;
    let reply = Reply::new()
        .bytes(": comment\n\ndata: {\n\ndata: [1]\n\ndata: \"x\"\n\ndata: {\"type\":7}\n\ndata: {\"type\":\"new.thing\"}\n\n")
        .bytes(*b"data: \xff\n\nnonsense\n\ndata: {\"type\":\"response.output_text.delta\"}\n\n")
        .bytes("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"hologram\"}}\n\n")
        .then(message("ok"));
    model.reply(reply);
    let (events, error) = call(&mut session(&config(&model)), &request(&["hi"])).await;
    assert_eq!((events.len(), error), (2, None), "the message and the end");
}

#[tokio::test]
async fn a_response_sent_byte_by_byte_is_read() {
    let model = ScriptedModel::start().await;
    model.reply(streamed(&["sl", "öw"]).drip());
    assert_eq!(texts(&mut session(&config(&model)), &request(&["hi"])).await, ["slöw"]);
}

#[tokio::test]
async fn the_last_event_needs_no_empty_line() {
    let model = ScriptedModel::start().await;
    model
        .reply(message("ok").bytes("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}").unfinished());
    assert_eq!(texts(&mut session(&config(&model)), &request(&["hi"])).await, ["ok"]);
}

#[tokio::test]
async fn a_body_without_length_ends_with_its_connection() {
    let model = ScriptedModel::start().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let end = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n";
    model.reply(garbage(format!("{head}{end}"))).reply(garbage(head));
    let mut session = session(&config(&model));
    let (events, error) = call(&mut session, &request(&["hi"])).await;
    assert_eq!((events.len(), error), (1, None));
    let (_, error) = call(&mut session, &request(&["hi"])).await;
    assert_eq!(error.unwrap().message(), CLOSED);
}

#[tokio::test]
async fn a_refusal_part_becomes_text() {
    let model = ScriptedModel::start().await;
    let item = json!({ "type": "message", "role": "assistant", "content": [{ "type": "refusal", "refusal": "no" }, { "type": "x" }] });
    model.reply(added(item.clone()).then(loomd_testkit::model::done(item)));
    assert_eq!(texts(&mut session(&config(&model)), &request(&["hi"])).await, ["no"]);
}

#[tokio::test]
async fn an_error_that_comes_with_200_is_found() {
    check(refused(200, "insufficient_quota", "x"), "Quota exceeded. Check your plan and billing details.").await;
}

#[tokio::test]
async fn a_success_without_a_stream_is_described() {
    let words = |what: &str| {
        format!(
            "stream disconnected before completion: the response is {what}, not a stream of events, url: BASE/responses"
        )
    };
    for (body, what) in [
        (json!({ "hello": 1 }), "JSON ({\"hello\":1})"),
        (json!("<html><title>Sign in</title></html>"), "an HTML page titled \"Sign in\""),
        (json!("Not today."), "text (Not today.)"),
    ] {
        let error = check(loomd_testkit::model::status(200, body), &words(what)).await;
        assert!(!error.retryable(), "{error:?}");
    }
    check(loomd_testkit::model::status(200, json!("")), CLOSED).await;
}

#[tokio::test]
async fn waiting_for_response_headers_ends_at_the_idle_timeout() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    let idle = ModelProvider { stream_idle_timeout_ms: Some(30), ..config(&model) };
    model.reply(message("x").after(&gate));
    let error = error(&idle).await;
    let words = "stream disconnected before completion: idle timeout: no response within 30 ms, url: BASE/responses";
    assert_eq!(error.message().replace(&model.base_url(), "BASE"), words);
    assert!(error.retryable());
}

/// Answers the first request and keeps the connection open; the next request on it is read, and the connection then
/// closed. Further connections are answered. Reports the requests that each connection read.
async fn cuts_the_second_request(listener: TcpListener, requests: tokio::sync::mpsc::UnboundedSender<usize>) {
    let answer = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ";
    for connection in 0.. {
        let (mut stream, _) = listener.accept().await.unwrap();
        for request in 0.. {
            if read_request(&mut stream).await.is_none() {
                break;
            }
            requests.send(connection).unwrap();
            if connection == 0 && request == 1 {
                break;
            }
            stream.write_all(format!("{head}{}\r\n\r\n{answer}", answer.len()).as_bytes()).await.unwrap();
        }
    }
}

/// Reads one request with its body; `None` at the end.
async fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(())
}

#[tokio::test]
async fn a_call_that_breaks_on_a_pooled_connection_is_not_sent_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let server = tokio::spawn(cuts_the_second_request(listener, seen));
    let model = ScriptedModel::start().await;
    let provider = ModelProvider { base_url: Some(format!("http://{address}/v1")), ..config(&model) };
    let mut session = session(&provider);
    assert_eq!(call(&mut session, &request(&["one"])).await.1, None);
    let (_, error) = call(&mut session, &request(&["two"])).await;
    assert!(matches!(error, Some(ModelError::Connect { .. })), "{error:?}");
    server.abort();
    let seen: Vec<_> = std::iter::from_fn(|| requests.try_recv().ok()).collect();
    assert_eq!(seen, [0, 0], "the connection of each request");
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_closed_is_replaced() {
    let model = ScriptedModel::start().await;
    let relay = Relay::start().await;
    relay.to(model.address());
    let provider = ModelProvider { base_url: Some(relay.base_url()), ..config(&model) };
    let mut session = session(&provider);
    model.reply(message("one")).reply(message("two"));
    assert_eq!(texts(&mut session, &request(&["hi"])).await, ["one"]);
    relay.cut().await;
    assert_eq!(texts(&mut session, &request(&["hi"])).await, ["two"]);
    assert_eq!((relay.connections(), model.calls().len()), (2, 2));
}

#[tokio::test]
async fn an_idle_stream_times_out() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    let idle = ModelProvider { stream_idle_timeout_ms: Some(30), ..config(&model) };
    model.reply(text_delta("x").wait(&gate));
    let words = "stream disconnected before completion: idle timeout waiting for SSE";
    let (events, error) = call(&mut session(&idle), &request(&["hi"])).await;
    assert_eq!((events.len(), error.unwrap().message()), (1, words.into()));
    model.abandoned(0).await;
}

#[tokio::test]
async fn a_failed_stream_ends_within_the_grace_period() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    model.reply(loomd_testkit::model::failed("invalid_prompt", "no").wait(&gate));
    assert_eq!(error(&config(&model)).await, ModelError::InvalidPrompt("no".into()));
}

#[tokio::test]
async fn a_server_error_is_retried_before_the_stream_begins() {
    let model = ScriptedModel::start().await;
    let patient = ModelProvider { request_max_retries: Some(3), ..config(&model) };
    model
        .reply(server_error())
        .reply(hang_up())
        .reply(refused(503, "x", "x").header("retry-after", "0"))
        .reply(message("ok"));
    assert_eq!(texts(&mut session(&patient), &request(&["hi"])).await, ["ok"]);
    assert_eq!(model.calls().len(), 4);
}

#[tokio::test]
async fn client_errors_are_not_retried() {
    let model = ScriptedModel::start().await;
    let patient = ModelProvider { request_max_retries: Some(3), ..config(&model) };
    model
        .reply(rate_limited(Some(0)))
        .reply(refused(404, "x", "x"))
        .reply(refused(503, "x", "x").header("retry-after", "9999"));
    for status in [429, 404, 503] {
        assert_eq!(error(&patient).await.http_status(), Some(status));
    }
    assert_eq!(model.calls().len(), 3);
}

/// Forwards connections, counts them and can close them. The first one may get a canned response.
pub(super) struct Relay {
    address: SocketAddr,
    state: Arc<RelayState>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct RelayState {
    target: Mutex<Option<SocketAddr>>,
    first: Mutex<Option<String>>,
    connections: AtomicUsize,
    open: Mutex<Vec<JoinHandle<()>>>,
}

impl Relay {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(RelayState::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Self { address, state, accepting }
    }

    pub fn to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = Some(target);
    }

    pub fn answer_first(&self, answer: &str) {
        *self.state.first.lock().unwrap() = Some(answer.into());
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Closes all open connections.
    pub async fn cut(&self) {
        let open = std::mem::take(&mut *self.state.open.lock().unwrap());
        for connection in open {
            connection.abort();
            let _ = connection.await;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.state.open.lock().unwrap().drain(..).for_each(|connection| connection.abort());
    }
}

async fn accept(listener: TcpListener, state: Arc<RelayState>) {
    while let Ok((mut near, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        let target = state.target.lock().unwrap().unwrap();
        let first = state.first.lock().unwrap().take();
        let relay = tokio::spawn(async move {
            if let Some(answer) = first {
                near.readable().await.unwrap();
                near.write_all(answer.as_bytes()).await.unwrap();
                return;
            }
            let mut far = TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
        state.open.lock().unwrap().push(relay);
    }
}

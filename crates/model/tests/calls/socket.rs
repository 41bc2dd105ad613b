//! Calls over a websocket, against a scripted server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use loomd_config::config_toml::ModelProvider;
use loomd_model::{Bearer, BoxFuture, CallMeter, Credentials, InputItem, ModelError, ModelEvent, Session};
use loomd_protocol::JsonValue;
use loomd_protocol::Secret;
use loomd_testkit::ScriptedModel;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request as Opening, Response};

use super::faults::Relay;
use super::{assistant, call, config, request, session, session_of, texts, user};

/// The server's reaction to one message.
enum Reaction {
    Events(Vec<JsonValue>),
    Close,
}

use Reaction::{Close, Events};

#[derive(Default)]
struct ServerState {
    script: VecDeque<Reaction>,
    received: Vec<JsonValue>,
    /// The headers of each handshake.
    opened: Vec<Vec<(String, String)>>,
}

pub(super) struct Socket {
    base_url: String,
    state: Arc<Mutex<ServerState>>,
    accepting: AbortHandle,
}

impl Socket {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(ServerState::default()));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Self { base_url, state, accepting }
    }

    fn session(&self) -> Session {
        session(&self.config())
    }

    pub fn config(&self) -> ModelProvider {
        ModelProvider {
            name: "Socket".into(),
            base_url: Some(self.base_url.clone()),
            supports_websockets: true,
            ..ModelProvider::default()
        }
    }

    fn answer(&self, answer: Reaction) -> &Self {
        self.state.lock().unwrap().script.push_back(answer);
        self
    }

    /// Returns the n-th message, without the members that all messages share.
    fn received(&self, index: usize) -> JsonValue {
        let mut message = self.state.lock().unwrap().received[index].clone();
        for member in ["model", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store"] {
            message.as_object_mut().unwrap().remove(member);
        }
        for member in ["stream", "include", "prompt_cache_key"] {
            message.as_object_mut().unwrap().remove(member);
        }
        message
    }

    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().opened.len()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<ServerState>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: tokio::net::TcpStream, state: Arc<Mutex<ServerState>>) {
    #[allow(clippy::result_large_err, reason = "the callback's type is given")]
    let note = |opening: &Opening, mut response: Response| {
        let headers = opening.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        state.lock().unwrap().opened.push(headers.collect());
        response.headers_mut().insert("x-codex-turn-state", "sticky".parse().unwrap());
        Ok(response)
    };
    let mut socket = tokio_tungstenite::accept_hdr_async(stream, note).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let answer = {
            let mut state = state.lock().unwrap();
            state.received.push(serde_json::from_str(&text).unwrap());
            let number = state.received.len();
            state.script.pop_front().unwrap_or_else(|| Events(vec![completed(&format!("r{number}"))]))
        };
        let Events(events) = answer else { return };
        for event in events {
            socket.send(Message::text(event.to_string())).await.unwrap();
        }
    }
}

fn completed(id: &str) -> JsonValue {
    json!({ "type": "response.completed", "response": { "id": id } })
}

fn done(id: &str, text: &str) -> JsonValue {
    json!({ "type": "response.output_item.done", "item": assistant(id, text) })
}

fn input(texts: &[&str]) -> JsonValue {
    texts
        .iter()
        .map(|text| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }))
        .collect()
}

#[tokio::test]
async fn later_calls_send_only_new_items() {
    let socket = Socket::start().await;
    let mut session = socket.session();
    socket.answer(Events(vec![done("m1", "hello"), completed("r1")]));
    assert_eq!(texts(&mut session, &request(&["one"])).await, ["hello"]);
    let mut next = request(&["one"]);
    next.input.extend([InputItem::new(&assistant("m1", "hello")).unwrap(), user("two")]);
    next.headers.turn_metadata = Some("{}".into());
    texts(&mut session, &next).await;
    assert_eq!(socket.received(0), json!({ "type": "response.create", "input": input(&["one"]) }));
    let expected = json!({
        "type": "response.create",
        "previous_response_id": "r1",
        "input": input(&["two"]),
        "client_metadata": { "x-codex-turn-metadata": "{}" },
    });
    assert_eq!((socket.received(1), socket.connections()), (expected, 1));
}

#[tokio::test]
async fn a_rewritten_conversation_is_sent_whole() {
    let socket = Socket::start().await;
    let mut session = socket.session();
    texts(&mut session, &request(&["one", "two"])).await;
    texts(&mut session, &request(&["one"])).await;
    texts(&mut session, &request(&["other", "three"])).await;
    let mut other_model = request(&["other", "three", "four"]);
    other_model.model = "other".into();
    texts(&mut session, &other_model).await;
    for (index, expected) in
        [&["one", "two"][..], &["one"], &["other", "three"], &["other", "three", "four"]].iter().enumerate()
    {
        assert_eq!(socket.received(index), json!({ "type": "response.create", "input": input(expected) }));
    }
    assert_eq!(socket.connections(), 1);
}

#[tokio::test]
async fn the_handshake_carries_the_headers_of_the_call() {
    let socket = Socket::start().await;
    let config = ModelProvider { env_key: Some("KEY".into()), ..socket.config() };
    let mut session = session_of("scripted", &config, |name| (name == "KEY").then(|| "sk".into()), None);
    let mut events = session.stream(&request(&["one"]), CallMeter::none()).await.unwrap();
    let Some(Ok(ModelEvent::Headers(headers))) = events.next().await else { panic!("headers come first") };
    assert_eq!((headers.turn_state.as_deref(), headers.rate_limits.len()), (Some("sticky"), 0));
    while events.next().await.is_some() {}
    let opened = socket.state.lock().unwrap().opened[0].clone();
    let find = |name: &str| opened.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    for (name, value) in [
        ("openai-beta", Some("responses_websockets=2026-02-06")),
        ("originator", Some("test")),
        ("session_id", Some("thread-1")),
        ("x-client-request-id", Some("thread-1")),
        ("authorization", Some("Bearer sk")),
        ("content-type", None),
    ] {
        assert_eq!(find(name), value, "{name}");
    }
}

/// A key that the test replaces.
struct ChangingCredentials(Mutex<String>);

impl Credentials for ChangingCredentials {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        let key = Bearer::key(Secret::from(self.0.lock().unwrap().clone()));
        Box::pin(std::future::ready(Ok(Some(key))))
    }

    fn recover<'a>(&'a self, _: &'a Bearer, _: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

#[tokio::test]
async fn a_new_token_gets_a_new_connection() {
    let socket = Socket::start().await;
    let config = ModelProvider { requires_openai_auth: true, ..socket.config() };
    let account = Arc::new(ChangingCredentials(Mutex::new("one".into())));
    let mut session = session_of("scripted", &config, |_| None, Some(Arc::clone(&account) as Arc<dyn Credentials>));
    texts(&mut session, &request(&["one"])).await;
    *account.0.lock().unwrap() = "two".into();
    texts(&mut session, &request(&["one"])).await;
    texts(&mut session, &request(&["one"])).await;
    let opened = socket.state.lock().unwrap().opened.clone();
    let keys: Vec<_> =
        opened.iter().flatten().filter(|(name, _)| name == "authorization").map(|(_, key)| &**key).collect();
    assert_eq!(keys, ["Bearer one", "Bearer two"]);
}

#[tokio::test]
async fn the_first_call_continues_the_warm_up() {
    let socket = Socket::start().await;
    let mut session = socket.session();
    session.warm_up(&request(&["not yet"])).await;
    texts(&mut session, &request(&["one"])).await;
    assert_eq!(socket.received(0), json!({ "type": "response.create", "input": [], "generate": false }));
    let expected = json!({ "type": "response.create", "previous_response_id": "r1", "input": input(&["one"]) });
    assert_eq!((socket.received(1), socket.connections()), (expected, 1));
}

#[tokio::test]
async fn after_an_error_the_whole_input_is_sent_on_a_new_connection() {
    let socket = Socket::start().await;
    let mut session = socket.session();
    texts(&mut session, &request(&["one"])).await;
    let refusal = json!({ "type": "error", "status": 429, "error": { "type": "usage_limit_reached", "plan_type": "edu" },
        "headers": { "x-codex-primary-used-percent": "100", "x-codex-primary-window-minutes": 15 } });
    let full = json!({ "type": "error", "status": 400, "error": { "code": "websocket_connection_limit_reached", "message": "full" } });
    let failed =
        json!({ "type": "response.failed", "response": { "error": { "code": "invalid_prompt", "message": "no" } } });
    let said = "stream disconnected before completion: ";
    for (answer, message, retryable) in [
        (Events(vec![refusal]), "You've hit your usage limit. Try again later.", false),
        (Events(vec![full]), &*format!("{said}full"), true),
        (Events(vec![failed]), "no", false),
        (Close, &*format!("{said}WebSocket protocol error: Connection reset without closing handshake"), true),
    ] {
        socket.answer(answer);
        let (_, error) = call(&mut session, &request(&["one", "two"])).await;
        let error = error.unwrap();
        assert_eq!((&*error.message(), error.retryable()), (message, retryable));
    }
    texts(&mut session, &request(&["one", "two"])).await;
    assert_eq!(socket.received(5), json!({ "type": "response.create", "input": input(&["one", "two"]) }));
    assert_eq!(socket.connections(), 5);
}

#[tokio::test]
async fn rate_limits_and_server_models_are_emitted() {
    let socket = Socket::start().await;
    socket.answer(Events(vec![
        json!({ "type": "response.created", "response": { "id": "r1", "headers": { "OpenAI-Model": "other" } } }),
        json!({ "type": "codex.rate_limits", "rate_limits": { "primary": { "used_percent": 42.0 } } }),
        completed("r1"),
    ]));
    let (events, error) = call(&mut socket.session(), &request(&["one"])).await;
    assert_eq!(error, None);
    let [ModelEvent::ServerModel(model), ModelEvent::RateLimits(limits), ModelEvent::Completed { .. }] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!((&**model, limits.primary.as_ref().map(|window| window.used_percent)), ("other", Some(42)));
}

#[tokio::test]
async fn a_provider_without_websockets_is_called_over_http_from_then_on() {
    for status in ["426 Upgrade Required", "403 Forbidden", "404 Not Found", "405 Method Not Allowed"] {
        let (model, relay) = (ScriptedModel::start().await, Relay::start().await);
        relay.to(model.address());
        relay.answer_first(&format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"));
        let config = ModelProvider { base_url: Some(relay.base_url()), supports_websockets: true, ..config(&model) };
        let mut session = session(&config);
        for _ in 0..2 {
            assert_eq!(texts(&mut session, &request(&["one"])).await.len(), 1, "{status}");
        }
        assert!(!session.fall_back_to_http(), "{status}");
        assert_eq!((model.requests().len(), relay.connections()), (2, 2), "{status}");
    }
}

#[tokio::test]
async fn a_websocket_that_cannot_be_opened_fails_calls_until_fall_back_to_http() {
    let (model, relay) = (ScriptedModel::start().await, Relay::start().await);
    relay.to(model.address());
    relay.answer_first("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    let config = ModelProvider { base_url: Some(relay.base_url()), supports_websockets: true, ..config(&model) };
    let mut session = session(&config);
    let (_, error) = call(&mut session, &request(&["one"])).await;
    assert_eq!(error.unwrap().http_status(), Some(502));
    assert!(session.fall_back_to_http());
    assert!(!session.fall_back_to_http());
    assert_eq!(texts(&mut session, &request(&["one"])).await.len(), 1);
    assert_eq!(model.calls().len(), 1);
}

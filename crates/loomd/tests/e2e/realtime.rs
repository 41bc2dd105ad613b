//! Realtime sessions of threads: what becomes of the work that they delegate, and of the sessions themselves.

use futures_util::{SinkExt, StreamExt};
use loomd_testkit::model::{error, message};
use loomd_testkit::{Gate, Home, ScriptedModel, Server};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::common::{in_time, initialized};

struct Conversation {
    _home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
    peer: WebSocketStream<TcpStream>,
}

impl Conversation {
    /// A thread whose session is open.
    async fn new(version: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = ScriptedModel::start().await;
        let home = Home::new(&model).with(&format!(
            r#"
            experimental_realtime_ws_base_url = "http://{}"
            experimental_realtime_ws_startup_context = ""
            features.realtime_conversation = true
            realtime.version = "{version}"
            model_providers.scripted.experimental_bearer_token = "sk-test"
            "#,
            listener.local_addr().unwrap()
        ));
        let server = initialized(&home).await;
        let started = server.request("thread/start", json!({ "cwd": home.work() })).await.expect("a thread starts");
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        let params = json!({ "threadId": thread, "prompt": "be nice" });
        server.request("thread/realtime/start", params).await.expect("the session is started");
        let (stream, _) = in_time("a connection", listener.accept()).await.unwrap();
        let peer = tokio_tungstenite::accept_async(stream).await.unwrap();
        let mut conversation = Self { _home: home, model, server, thread, peer };
        assert_eq!(conversation.read().await["type"], "session.update");
        conversation.server.notification("thread/realtime/started").await;
        conversation
    }

    async fn read(&mut self) -> Value {
        loop {
            match in_time("a message", self.peer.next()).await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(_) => return json!("closed"),
                _ => continue,
            }
        }
    }

    async fn send(&mut self, event: Value) {
        self.peer.send(Message::text(event.to_string())).await.unwrap();
    }

    /// Delegates a request in version 2.
    async fn delegate(&mut self, call_id: &str, prompt: &str) {
        let arguments = json!({ "prompt": prompt }).to_string();
        let item =
            json!({ "id": "i", "type": "function_call", "name": "codex", "call_id": call_id, "arguments": arguments });
        self.send(json!({ "type": "conversation.item.done", "item": item })).await;
    }

    async fn request(&self, method: &str, mut params: Value) -> Value {
        params["threadId"] = self.thread.as_str().into();
        self.server.request(method, params).await.expect(method)
    }
}

#[tokio::test]
async fn a_delegated_turn_that_fails_is_answered_with_its_error() {
    let mut conversation = Conversation::new("v2").await;
    conversation.model.reply(error(400, "invalid_request_error", "no such luck"));
    conversation.delegate("c1", "work").await;
    let completed = conversation.server.notification("turn/completed").await;
    assert_eq!(completed["turn"]["status"], "failed");
    let output = conversation.read().await;
    assert_eq!((&output["item"]["type"], &output["item"]["call_id"]), (&json!("function_call_output"), &json!("c1")));
    assert!(output["item"]["output"].as_str().unwrap().contains("no such luck"), "{output}");
    assert_eq!(conversation.read().await["type"], "response.create");
}

#[tokio::test]
async fn the_responses_of_a_session_are_metered() {
    let mut conversation = Conversation::new("v2").await;
    let usage = json!({ "input_tokens": 20, "output_tokens": 5 });
    conversation.send(json!({ "type": "response.done", "response": { "id": "r1", "usage": usage } })).await;
    conversation.send(json!({ "type": "conversation.item.added", "item": { "id": "later" } })).await;
    let later = |params: &Value| params["item"]["id"] == "later";
    conversation.server.notification_where("thread/realtime/itemAdded", later).await;
    let read = conversation.request("account/usage/read", json!({})).await;
    assert_eq!(read["threadUsage"]["groups"][0]["totalTokens"], 25, "{read}");
}

#[tokio::test]
async fn a_delegated_turn_that_is_interrupted_is_answered() {
    let mut conversation = Conversation::new("v2").await;
    let gate = Gate::new();
    conversation.model.reply(message("late").after(&gate));
    conversation.delegate("c1", "work").await;
    let started = conversation.server.notification("turn/started").await;
    conversation.model.call(0).await;
    conversation.request("turn/interrupt", json!({ "turnId": started["turn"]["id"] })).await;
    let output = conversation.read().await;
    assert!(output["item"]["output"].as_str().unwrap().contains("interrupted"), "{output}");
}

#[tokio::test]
async fn a_call_that_is_announced_twice_runs_one_turn() {
    let mut conversation = Conversation::new("v2").await;
    conversation.model.reply(message("done"));
    conversation.delegate("c1", "work").await;
    let item = json!({ "id": "i", "type": "function_call", "name": "codex", "call_id": "c1", "arguments": "{}" });
    conversation.send(json!({ "type": "response.done", "response": { "output": [item] } })).await;
    conversation.server.notification("turn/completed").await;
    assert!(conversation.read().await["item"]["output"].as_str().unwrap().ends_with("done"));
    assert_eq!(conversation.model.calls().len(), 1);
}

#[tokio::test]
async fn typed_turns_are_not_sent_to_the_session() {
    let mut conversation = Conversation::new("v1").await;
    conversation.model.reply(message("typed answer"));
    conversation.server.start_turn(&conversation.thread, "typed").await;
    conversation.server.notification("turn/completed").await;
    conversation.request("thread/realtime/appendText", json!({ "text": "next" })).await;
    assert_eq!(conversation.read().await["item"]["content"][0]["text"], "next");
}

#[tokio::test]
async fn appending_to_no_session_leaves_the_next_turn_alone() {
    let conversation = Conversation::new("v1").await;
    conversation.request("thread/realtime/stop", json!({})).await;
    conversation.server.notification("thread/realtime/closed").await;
    conversation.request("thread/realtime/appendText", json!({ "text": "lost" })).await;
    let stray = conversation.server.notification("error").await;
    assert_eq!(stray["error"]["message"], "conversation is not running");
    conversation.model.reply(message("fine"));
    conversation.server.start_turn(&conversation.thread, "typed").await;
    let completed = conversation.server.notification("turn/completed").await;
    assert_eq!((&completed["turn"]["status"], &completed["turn"]["error"]), (&json!("completed"), &Value::Null));
}

#[tokio::test]
async fn a_session_ends_with_its_thread_and_with_the_server() {
    let mut conversation = Conversation::new("v1").await;
    conversation.request("thread/unsubscribe", json!({})).await;
    assert_eq!(conversation.read().await, json!("closed"));

    let Conversation { server, mut peer, .. } = Conversation::new("v1").await;
    drop(server);
    // However the process ends, the connection does.
    let rest = in_time("the end of the connection", async { while let Some(Ok(_)) = peer.next().await {} });
    rest.await;
}

//! A scripted server, played message by message.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use loomd_client::{Client, Endpoint, Events, Options, Transport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How long a test waits for a message before it fails. Tests with a paused clock pass it at once.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// One connection, from the server's side.
pub struct Server {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Bytes>,
}

impl Server {
    /// The next message from the client.
    pub async fn message(&mut self) -> Value {
        let message = tokio::time::timeout(TIMEOUT, self.incoming.recv()).await.expect("a message in time");
        serde_json::from_slice(&message.expect("the client is still there")).expect("messages are JSON")
    }

    /// The id and params of the next message, which must be this request.
    pub async fn request(&mut self, method: &str) -> (Value, Value) {
        let mut message = self.message().await;
        assert_eq!(message["method"], method, "{message}");
        (message["id"].take(), message["params"].take())
    }

    pub async fn send(&self, message: Value) {
        self.send_bytes(message.to_string()).await;
    }

    pub async fn send_bytes(&self, bytes: impl Into<Bytes>) {
        self.outgoing.send(bytes.into()).await.expect("the client is still there");
    }

    pub async fn reply(&self, id: Value, result: Value) {
        self.send(json!({ "id": id, "result": result })).await;
    }

    pub async fn refuse(&self, id: Value, code: i64, message: &str) {
        self.send(json!({ "id": id, "error": { "code": code, "message": message } })).await;
    }

    pub async fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params })).await;
    }

    /// Responds to the next message, which must be this request, and returns its params.
    pub async fn answer(&mut self, method: &str, result: Value) -> Value {
        let (id, params) = self.request(method).await;
        self.reply(id, result).await;
        params
    }

    /// The server's part of the handshake.
    pub async fn handshake(&mut self) {
        self.answer("initialize", initialized()).await;
        assert_eq!(self.message().await, json!({ "method": "initialized" }));
    }

    /// Waits until the client has closed the connection.
    pub async fn left(&mut self) {
        let message = tokio::time::timeout(TIMEOUT, self.incoming.recv()).await.expect("the end in time");
        assert_eq!(message, None, "the client says nothing more");
    }
}

/// An endpoint, and its connections as they are opened.
pub fn scripted() -> (Endpoint, mpsc::Receiver<Server>) {
    let (accept, accepted) = mpsc::channel(8);
    let accept = Mutex::new(accept);
    let endpoint = Endpoint::custom(move || {
        let accept = accept.lock().unwrap().clone();
        async move {
            let (outgoing, from_client) = mpsc::channel(64);
            let (to_client, incoming) = mpsc::channel(64);
            let server = Server { incoming: from_client, outgoing: to_client };
            accept.send(server).await.map_err(|_| std::io::Error::other("no server accepts"))?;
            Ok(Transport::new(incoming, outgoing))
        }
    });
    (endpoint, accepted)
}

/// A connected client and its server.
pub async fn connected(options: Options) -> (Client, Server) {
    let (client, _, server) = opened(options).await;
    (client, server)
}

/// Like [`connected`], with a stream of all events.
pub async fn opened(options: Options) -> (Client, Events, Server) {
    let (endpoint, mut accepted) = scripted();
    let server = async {
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
        server
    };
    let (client, server) = tokio::join!(Client::open(endpoint, options), server);
    let (client, events) = client.expect("a connection");
    (client, events, server)
}

pub fn initialized() -> Value {
    json!({ "userAgent": "server/1.0", "codexHome": "/home", "platformFamily": "unix", "platformOs": "linux" })
}

pub fn thread(id: &str) -> Value {
    json!({
        "id": id, "preview": "", "ephemeral": false, "modelProvider": "p", "createdAt": 1, "updatedAt": 1,
        "status": { "type": "idle" }, "path": null, "cwd": "/w", "cliVersion": "1", "source": "vscode",
        "agentNickname": null, "agentRole": null, "gitInfo": null, "name": null, "turns": [],
    })
}

/// The result of `thread/start`, `thread/resume` and `thread/fork`.
pub fn opened_thread(thread: Value) -> Value {
    json!({
        "thread": thread, "model": "m", "modelProvider": "p", "serviceTier": null, "cwd": "/w",
        "approvalPolicy": "never", "approvalsReviewer": "user", "sandbox": { "type": "dangerFullAccess" },
        "reasoningEffort": null,
    })
}

pub fn turn(id: &str, status: &str) -> Value {
    json!({ "id": id, "items": [], "status": status, "error": null })
}

pub fn turn_of(thread: &str, id: &str, status: &str) -> Value {
    json!({ "threadId": thread, "turn": turn(id, status) })
}

pub fn item_of(thread: &str, turn: &str, item: Value) -> Value {
    json!({ "threadId": thread, "turnId": turn, "item": item })
}

pub fn agent_message(id: &str, text: &str) -> Value {
    json!({ "type": "agentMessage", "id": id, "text": text, "phase": null, "memoryCitation": null })
}

pub fn command(id: &str, status: &str) -> Value {
    json!({
        "type": "commandExecution", "id": id, "command": "ls", "cwd": "/w", "processId": null, "source": "agent",
        "status": status, "commandActions": [], "aggregatedOutput": null, "exitCode": null, "durationMs": null,
    })
}

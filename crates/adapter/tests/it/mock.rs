//! A scripted app-server on a pair of pipes, with a message per line.

use std::time::Duration;

use loomd_adapter::{Adapter, Endpoint, Prompt, Section};
use loomd_client::Transport;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::sync::mpsc;

/// How long a test waits for a message before it fails.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// One connection, from the server's side.
pub struct Mock {
    lines: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
    requests: i64,
}

/// An adapter in `/w` and its connections as they are opened.
pub fn mock() -> (Adapter, mpsc::Receiver<Mock>) {
    let (accept, accepted) = mpsc::channel(8);
    let accept = Mutex::new(accept);
    let endpoint = Endpoint::custom(move || {
        let accept = accept.lock().clone();
        async move {
            let (client_reader, writer) = duplex(1 << 20);
            let (reader, client_writer) = duplex(1 << 20);
            let mock = Mock { lines: BufReader::new(reader).lines(), writer, requests: 1000 };
            accept.send(mock).await.map_err(|_| std::io::Error::other("no server accepts"))?;
            Ok(Transport::over_lines(client_reader, client_writer))
        }
    });
    (Adapter::new(endpoint).cwd("/w").client("mock-client", "1.0"), accepted)
}

pub fn prompt() -> Prompt {
    Prompt::new("test", "mock").section(Section::new("task", "Task", "Do it.")).build().unwrap()
}

impl Mock {
    /// The next message of the client; `None` once it has left.
    pub async fn message(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(TIMEOUT, self.lines.next_line()).await.expect("a message in time").unwrap();
        line.map(|line| serde_json::from_str(&line).expect("messages are JSON"))
    }

    /// The id and params of the next message, which must be this request.
    pub async fn request(&mut self, method: &str) -> (Value, Value) {
        let mut message = self.message().await.expect("the client is still there");
        assert_eq!(message["method"], method, "{message}");
        assert!(message.get("jsonrpc").is_none(), "{message}");
        (message["id"].take(), message["params"].take())
    }

    pub async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("the client is still there");
    }

    /// Responds to the next message, which must be this request, and returns its params.
    pub async fn answer(&mut self, method: &str, result: Value) -> Value {
        let (id, params) = self.request(method).await;
        self.send(json!({ "id": id, "result": result })).await;
        params
    }

    pub async fn refuse(&mut self, method: &str, message: &str) -> Value {
        let (id, params) = self.request(method).await;
        self.send(json!({ "id": id, "error": { "code": -32600, "message": message } })).await;
        params
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params })).await;
    }

    /// Sends a server request and returns the whole response.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        let answer = self.message().await.expect("an answer");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub async fn handshake(&mut self) -> Value {
        let result =
            json!({ "userAgent": "mock/1.0", "codexHome": "/home", "platformFamily": "unix", "platformOs": "linux" });
        let params = self.answer("initialize", result).await;
        assert_eq!(self.message().await, Some(json!({ "method": "initialized" })));
        params
    }

    /// Everything up to the running turn `u` of thread `t`; returns the params of `thread/start` and `turn/start`.
    pub async fn turn(&mut self) -> (Value, Value) {
        self.handshake().await;
        let thread = self.answer("thread/start", opened("t")).await;
        (thread, self.turn_start().await)
    }

    pub async fn turn_start(&mut self) -> Value {
        let params = self.answer("turn/start", json!({ "turn": turn("inProgress", Value::Null) })).await;
        self.notify("turn/started", json!({ "threadId": "t", "turn": turn("inProgress", Value::Null) })).await;
        params
    }

    pub async fn item(&mut self, item: Value) {
        self.notify("item/completed", json!({ "threadId": "t", "turnId": "u", "item": item })).await;
    }

    pub async fn say(&mut self, text: &str) {
        let item = json!({ "type": "agentMessage", "id": "m", "text": text, "phase": null, "memoryCitation": null });
        self.item(item).await;
    }

    /// Usage of a call, and of the thread with it.
    pub async fn usage(&mut self, last: i64, total: i64) {
        let counts = |input: i64| {
            json!({ "inputTokens": input, "outputTokens": 1, "cachedInputTokens": 0, "reasoningOutputTokens": 0,
                "totalTokens": input + 1 })
        };
        let usage = json!({ "last": counts(last), "total": counts(total), "modelContextWindow": 1000 });
        self.notify("thread/tokenUsage/updated", json!({ "threadId": "t", "turnId": "u", "tokenUsage": usage })).await;
    }

    pub async fn end(&mut self, status: &str, error: Value) {
        self.notify("turn/completed", json!({ "threadId": "t", "turn": turn(status, error) })).await;
    }

    /// The model's last message and the end of the turn; the client leaves after it.
    pub async fn finish(&mut self, text: &str) {
        self.say(text).await;
        self.end("completed", Value::Null).await;
        self.left().await;
    }

    /// Waits until the client has closed the connection, without another message.
    pub async fn left(&mut self) {
        assert_eq!(self.message().await, None);
    }

    /// Calls a tool and returns its answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({
            "threadId": "t", "turnId": "u", "callId": format!("call-{tool}"), "tool": tool, "arguments": arguments,
        });
        self.ask("item/tool/call", params).await["result"].take()
    }
}

/// The result of `thread/start` and `thread/resume`.
pub fn opened(id: &str) -> Value {
    let thread = json!({
        "id": id, "preview": "", "ephemeral": false, "modelProvider": "p", "createdAt": 1, "updatedAt": 1,
        "status": { "type": "idle" }, "path": null, "cwd": "/w", "cliVersion": "1", "source": "vscode",
        "agentNickname": null, "agentRole": null, "gitInfo": null, "name": null, "turns": [],
    });
    json!({
        "thread": thread, "model": "m", "modelProvider": "p", "serviceTier": null, "cwd": "/w",
        "approvalPolicy": "never", "approvalsReviewer": "user", "sandbox": { "type": "dangerFullAccess" },
        "reasoningEffort": null,
    })
}

fn turn(status: &str, error: Value) -> Value {
    json!({ "id": "u", "items": [], "status": status, "error": error })
}

//! [`Connection`]: a client's connection to a node, which may end at any moment. Every message is given to an observer
//! in the order in which it arrives.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer is waited for; a node that is paused answers no sooner than it goes on.
const ANSWER: Duration = Duration::from_secs(20);

/// What is told about each message, in order.
pub trait Observer: Send + Sync + 'static {
    /// A notification or a server request.
    fn received(&self, message: &Value);
    /// The result of a request.
    fn answered(&self, method: &str, params: &Value, result: &Value);
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The connection ended, or nothing came in time: whether the request was carried out is not known.
    Lost,
    /// The request was refused.
    Refused(Value),
}

pub struct Connection {
    sink: tokio::sync::Mutex<SplitSink<WebSocketStream<TcpStream>, Message>>,
    pending: Arc<Pending>,
    next: AtomicI64,
    ended: watch::Receiver<bool>,
    reader: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Pending(Mutex<HashMap<i64, Waiting>>);

struct Waiting {
    method: String,
    params: Value,
    answer: oneshot::Sender<Value>,
}

impl Connection {
    /// Connects and does the handshake.
    pub async fn open(port: u16, observer: Arc<dyn Observer>) -> Option<Self> {
        tokio::time::timeout(CONNECT, Self::try_open(port, observer)).await.ok()?
    }

    async fn try_open(port: u16, observer: Arc<dyn Observer>) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (socket, _) = client_async(format!("ws://127.0.0.1:{port}/"), stream).await.ok()?;
        let (sink, mut stream) = socket.split();
        let pending = Arc::new(Pending::default());
        let (end, ended) = watch::channel(false);
        let waiting = Arc::clone(&pending);
        let reader = tokio::spawn(async move {
            while let Some(Ok(frame)) = stream.next().await {
                if let Message::Text(text) = frame
                    && let Ok(message) = serde_json::from_str::<Value>(&text)
                {
                    take(message, &waiting, &*observer);
                }
            }
            waiting.0.lock().clear();
            _ = end.send(true);
        });
        let (sink, next) = (tokio::sync::Mutex::new(sink), AtomicI64::new(1));
        let connection = Self { sink, pending, next, ended, reader };
        let capabilities = json!({ "experimentalApi": true, "eventIds": true });
        let params = json!({ "clientInfo": { "name": "chaos", "version": "1.0.0" }, "capabilities": capabilities });
        connection.request("initialize", params).await.ok()?;
        connection.send(&json!({ "method": "initialized" })).await?;
        Some(connection)
    }

    pub fn is_open(&self) -> bool {
        !*self.ended.borrow()
    }

    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Unanswered> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let message = json!({ "id": id, "method": method, "params": params });
        self.pending.0.lock().insert(id, Waiting { method: method.into(), params, answer });
        if !self.is_open() || self.send(&message).await.is_none() {
            self.pending.0.lock().remove(&id);
            return Err(Unanswered::Lost);
        }
        match tokio::time::timeout(ANSWER, answered).await {
            Ok(Ok(mut message)) if message.get("error").is_some() => Err(Unanswered::Refused(message["error"].take())),
            Ok(Ok(mut message)) => Ok(message["result"].take()),
            _ => {
                self.pending.0.lock().remove(&id);
                Err(Unanswered::Lost)
            }
        }
    }

    /// Answers a server request.
    pub async fn respond(&self, id: &Value, result: Value) {
        self.send(&json!({ "id": id, "result": result })).await;
    }

    /// `None` when the connection has ended.
    async fn send(&self, message: &Value) -> Option<()> {
        let send = async { self.sink.lock().await.send(Message::text(message.to_string())).await };
        tokio::time::timeout(ANSWER, send).await.ok()?.ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn take(message: Value, pending: &Pending, observer: &dyn Observer) {
    if message.get("method").is_some() {
        observer.received(&message);
        return;
    }
    let waiting = message["id"].as_i64().and_then(|id| pending.0.lock().remove(&id));
    if let Some(waiting) = waiting {
        if let Some(result) = message.get("result") {
            observer.answered(&waiting.method, &waiting.params, result);
        }
        _ = waiting.answer.send(message);
    }
}

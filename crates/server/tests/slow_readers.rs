//! Clients that do not read, beside clients that do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use loomd_config::{LoadRequest, Overrides, load};
use loomd_protocol::{
    AbsolutePathBuf, AgentMessageDeltaNotification, ServerNotification, ThreadNameUpdatedNotification,
};
use loomd_server::{App, ConfigSources, serve_on};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use tokio_util::sync::CancellationToken;

struct Server {
    folder: tempfile::TempDir,
    app: Arc<App>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsolutePathBuf::new(folder.path()).unwrap();
        let flags = Overrides::default();
        let config = load(&LoadRequest::new(&home, &flags)).unwrap();
        let sources = ConfigSources { home, system_file: None, user_home: None, flags, live: Default::default() };
        let app = Arc::new(App::new(sources, &config, Vec::new()));
        let stop = CancellationToken::new();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let serving = tokio::spawn(serve_on(listener, Arc::clone(&app), stop.clone()));
        Self { folder, app, stop, serving }
    }

    async fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.folder.path().join("socket")).await.unwrap();
        let (socket, _) = client_async("ws://localhost/", stream).await.unwrap();
        let mut client = Client(socket);
        let params = json!({ "clientInfo": { "name": "test", "version": "1" } });
        client.send(json!({ "method": "initialize", "id": 0, "params": params })).await;
        client.next().await.unwrap();
        client
    }

    async fn say(&self, text: &str) {
        self.app
            .broadcast(ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
                thread_id: "thread".into(),
                turn_id: "turn".into(),
                item_id: "item".into(),
                delta: text.into(),
            }))
            .await;
    }

    async fn rename(&self, name: String) {
        self.app
            .broadcast(ServerNotification::ThreadNameUpdated(ThreadNameUpdatedNotification {
                thread_id: "thread".into(),
                thread_name: Some(name),
            }))
            .await;
    }

    async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

struct Client(WebSocketStream<UnixStream>);

impl Client {
    async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message; `None` when the connection is over, with or without a Close.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// How many deltas came, and their text, until the thread is renamed to `end`.
    async fn text_until_renamed(&mut self) -> (usize, String) {
        let (mut count, mut text) = (0, String::new());
        while let Some(message) = self.next().await {
            match message["params"]["delta"].as_str() {
                Some(delta) => {
                    count += 1;
                    text.push_str(delta);
                }
                None => {
                    assert_eq!(message["params"]["threadName"], "end");
                    return (count, text);
                }
            }
        }
        panic!("cut after {count} deltas");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_late_gets_the_whole_text_in_fewer_pieces() {
    const DELTAS: usize = 50_000;
    let server = Server::start();
    let mut late = server.connect().await;
    let mut prompt = server.connect().await;
    let reading = tokio::spawn(async move { prompt.text_until_renamed().await });
    let mut expected = String::new();
    for number in 0..DELTAS {
        let piece = format!("{number} ");
        server.say(&piece).await;
        expected += &piece;
    }
    server.rename("end".into()).await;

    let (_, text) = reading.await.unwrap();
    assert_eq!(text, expected);
    let (count, text) = late.text_until_renamed().await;
    assert_eq!(text, expected);
    assert!(count < DELTAS / 2, "{count} deltas were not merged");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_reaches_a_client_that_reads_whole() {
    let server = Server::start();
    let mut client = server.connect().await;
    for _ in 0..300 {
        server.say("x").await;
    }
    server.rename("end".into()).await;
    assert_eq!(client.text_until_renamed().await.1, "x".repeat(300));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_cut_and_the_others_are_not() {
    let server = Server::start();
    let mut stuck = server.connect().await;
    let mut reader = server.connect().await;
    let name = "x".repeat(1024 * 1024);
    for _ in 0..100 {
        server.rename(name.clone()).await;
        assert_eq!(reader.next().await.unwrap()["params"]["threadName"], name.as_str());
    }
    let mut received = 0;
    while stuck.next().await.is_some() {
        received += 1;
    }
    assert!(received < 100, "it was cut");
    reader.send(json!({ "method": "thread/loaded/list", "id": 1 })).await;
    assert_eq!(reader.next().await.unwrap()["id"], 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_client_that_does_not_read_wait_and_are_all_answered() {
    const REQUESTS: u64 = 5_000;
    let server = Server::start();
    let client = server.connect().await;
    let (mut sink, stream) = client.0.split();
    let writing = tokio::spawn(async move {
        for id in 1..=REQUESTS {
            let ping = json!({ "method": "config/read", "id": id });
            sink.feed(Message::text(ping.to_string())).await.unwrap();
        }
        sink.flush().await.unwrap();
        sink
    });
    let mut other = server.connect().await;
    other.send(json!({ "method": "thread/loaded/list", "id": 1 })).await;
    assert_eq!(other.next().await.unwrap()["id"], 1, "others are served meanwhile");
    let answered: Vec<u64> = stream
        .filter_map(async |message| match message.unwrap() {
            Message::Text(text) => serde_json::from_str::<Value>(&text).unwrap()["id"].as_u64(),
            _ => None,
        })
        .take(REQUESTS as usize)
        .collect()
        .await;
    assert_eq!(answered, (1..=REQUESTS).collect::<Vec<_>>());
    drop(writing.await.unwrap());
    server.stop().await;
}

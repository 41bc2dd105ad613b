//! A session: its connection, the task that serves it and the bounded queues between the two sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::HeaderMap;
use loomd_model::{Http, WebSocket};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::dialect::{Closing, Dialect, Event, Input, Step};
use crate::session_update::SessionSettings;

/// The most inputs of a sort that wait to be sent: audio, and everything else.
const MAX_QUEUED: usize = 256;

/// The most bytes of either sort that wait to be sent: about two minutes of audio.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// The most events that wait to be handled. Nothing more is read from the connection meanwhile.
const MAX_EVENTS: usize = 64;

/// The largest message that is read.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// How long the other side may take to accept a message.
const SENDING: Duration = Duration::from_secs(20);

/// How long the connection may take to close.
const CLOSING: Duration = Duration::from_secs(1);

/// How a session is opened.
pub struct Connection {
    /// The URL of the websocket.
    pub url: String,
    pub headers: HeaderMap,
    pub settings: SessionSettings,
    /// The limit for the connection and its handshake.
    pub timeout: Duration,
}

/// Too much waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// A session that is being opened, or is open. Its connection is closed when it is dropped.
pub struct Session {
    inputs: InputQueue,
    audio: InputQueue,
    events: mpsc::Receiver<Event>,
    _open: DropGuard,
}

impl Session {
    /// Opens a session. `connection` is what has to be found out first; its error is reported as
    /// [`Event::NotStarted`].
    pub fn open(
        http: Arc<Http>,
        connection: impl Future<Output = Result<Connection, String>> + Send + 'static,
    ) -> Self {
        let (inputs, inputs_out) = InputQueue::new();
        let (audio, audio_out) = InputQueue::new();
        let (events, events_out) = mpsc::channel(MAX_EVENTS);
        let ended = CancellationToken::new();
        let task = Task { inputs: inputs_out, audio: audio_out, events, ended: ended.clone() };
        tokio::spawn(task.run(http, connection));
        Self { inputs, audio, events: events_out, _open: ended.drop_guard() }
    }

    /// Returns the next event; `None` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Queues audio. Dropped when too much of it waits.
    pub fn append_audio(&self, data: String) {
        _ = self.audio.put(Input::Audio(data));
    }

    /// Returns the queue for everything but audio.
    pub fn inputs(&self) -> &InputQueue {
        &self.inputs
    }
}

/// Inputs that wait to be sent. Cheap to clone; never waits.
#[derive(Clone)]
pub struct InputQueue {
    sender: mpsc::Sender<Input>,
    bytes: Arc<AtomicUsize>,
}

impl InputQueue {
    fn new() -> (Self, Inputs) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        let bytes = Arc::new(AtomicUsize::new(0));
        (Self { sender, bytes: Arc::clone(&bytes) }, Inputs { receiver, bytes })
    }

    /// Queues an input. It is dropped silently once the session is over.
    pub fn put(&self, input: Input) -> Result<(), QueueFull> {
        let size = input.size();
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > MAX_QUEUED_BYTES {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(QueueFull);
        }
        match self.sender.try_send(input) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.bytes.fetch_sub(size, Ordering::Relaxed);
                Err(QueueFull)
            }
        }
    }
}

/// The other end of an [`InputQueue`].
struct Inputs {
    receiver: mpsc::Receiver<Input>,
    bytes: Arc<AtomicUsize>,
}

impl Inputs {
    /// Never resolves once the queue is closed. Cancel-safe.
    async fn next(&mut self) -> Input {
        match self.receiver.recv().await {
            Some(input) => {
                self.bytes.fetch_sub(input.size(), Ordering::Relaxed);
                input
            }
            None => std::future::pending().await,
        }
    }
}

/// The task of a session.
struct Task {
    inputs: Inputs,
    audio: Inputs,
    events: mpsc::Sender<Event>,
    /// Cancelled when the [`Session`] is dropped.
    ended: CancellationToken,
}

impl Task {
    async fn run(self, http: Arc<Http>, connection: impl Future<Output = Result<Connection, String>>) {
        let ended = self.ended.clone();
        let opened = tokio::select! {
            biased;
            () = ended.cancelled() => return,
            opened = open(&http, connection) => opened,
        };
        match opened {
            Ok((mut socket, dialect)) => {
                let closing = tokio::select! {
                    biased;
                    () = ended.cancelled() => None,
                    closing = self.serve(&mut socket, dialect) => closing,
                };
                // The other side is told when it is we who end the session.
                if closing != Some(Closing::Transport) {
                    _ = tokio::time::timeout(CLOSING, socket.close(None)).await;
                }
            }
            Err(message) => _ = self.events.send(Event::NotStarted(message)).await,
        }
    }

    /// Serves the connection until it ends; why it did, which has been reported. `None` when the receiver has been dropped.
    async fn serve(mut self, socket: &mut WebSocket, mut dialect: Dialect) -> Option<Closing> {
        self.events.send(Event::Started).await.ok()?;
        loop {
            let step = tokio::select! {
                input = self.inputs.next() => Step { events: Vec::new(), messages: dialect.send(input) },
                input = self.audio.next() => Step { events: Vec::new(), messages: dialect.send(input) },
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => dialect.receive(&text),
                    Some(Ok(Message::Binary(_))) => {
                        closed(Closing::Error("unexpected binary realtime websocket event".into()))
                    }
                    Some(Ok(Message::Close(_))) | None => closed(Closing::Transport),
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a realtime connection broke");
                        closed(Closing::Transport)
                    }
                },
            };
            for event in step.events {
                let closing = match &event {
                    Event::Closed(closing) => Some(closing.clone()),
                    _ => None,
                };
                self.events.send(event).await.ok()?;
                if closing.is_some() {
                    return closing;
                }
            }
            for message in step.messages {
                if let Err(closing) = send(socket, &message).await {
                    self.events.send(Event::Closed(closing.clone())).await.ok()?;
                    return Some(closing);
                }
            }
        }
    }
}

fn closed(closing: Closing) -> Step {
    Step { events: vec![Event::Closed(closing)], messages: Vec::new() }
}

/// Opens the connection and configures the session.
async fn open(
    http: &Http,
    connection: impl Future<Output = Result<Connection, String>>,
) -> Result<(WebSocket, Dialect), String> {
    let Connection { url, headers, settings, timeout } = connection.await?;
    let failed = |why: String| format!("failed to connect realtime websocket: {why}");
    let opening = http.open_websocket(&url, headers, MAX_MESSAGE);
    let opened = tokio::time::timeout(timeout, opening).await;
    let (mut socket, _) = opened
        .map_err(|_| failed(format!("no connection within {} ms", timeout.as_millis())))?
        .map_err(|error| failed(error.to_string()))?;
    match send(&mut socket, &settings.update()).await {
        Ok(()) => Ok((socket, Dialect::new(settings.version))),
        Err(Closing::Transport) => Err(failed("the connection was closed".into())),
        Err(Closing::Error(why)) => Err(failed(why)),
    }
}

async fn send(socket: &mut WebSocket, message: &Value) -> Result<(), Closing> {
    match tokio::time::timeout(SENDING, socket.send(Message::text(message.to_string()))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a realtime connection broke");
            Err(Closing::Transport)
        }
        Err(_) => Err(Closing::Error("the realtime connection does not accept messages any more".into())),
    }
}

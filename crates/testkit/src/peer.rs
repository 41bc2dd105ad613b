//! [`Peer`]: the client's side of a connection: requests, notifications, and server requests.
//!
//! Independent of the transport. Waits match earlier messages as well as later ones, and each message is returned
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use loomd_protocol::{
    Call, JsonValue, RequestId, RpcError, encode_error, encode_notification, encode_request, encode_response,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Mutex;

use crate::inbox::Inbox;
use crate::outgoing::Outgoing;
use crate::task::Task;
use crate::ws::Frame;
use crate::{CapturedOutput, TIMEOUT};

/// A connection. Clones share it; it is closed when the last one is dropped.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    inbox: Arc<Inbox>,
    outgoing: Mutex<Outgoing>,
    next_id: AtomicI64,
    _reader: Task,
}

impl Peer {
    /// A connection of lines.
    pub fn over_lines(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::of_process(reader, writer, None)
    }

    pub(crate) fn of_process(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        stderr: Option<CapturedOutput>,
    ) -> Self {
        Self::new(Outgoing::Lines(Box::new(writer)), stderr, |inbox| read_lines(reader, inbox))
    }

    /// `read` fills the inbox until the connection ends.
    pub(crate) fn new<R>(outgoing: Outgoing, stderr: Option<CapturedOutput>, read: impl FnOnce(Arc<Inbox>) -> R) -> Self
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let inbox = Arc::new(Inbox::new(stderr));
        let reader = Task::spawn(read(Arc::clone(&inbox)));
        Self(Arc::new(Inner { inbox, outgoing: Mutex::new(outgoing), next_id: AtomicI64::new(0), _reader: reader }))
    }

    /// Sends a request and decodes its result.
    pub async fn call<C: Call>(&self, params: C::Params) -> Result<C::Result, RpcError> {
        let id = self.next_id();
        self.send_message(encode_request(&id, C::METHOD, &params)).await;
        self.answer(&id, C::METHOD).await.map(|result| decode(C::METHOD, result))
    }

    /// Sends a request with any params.
    pub async fn request(&self, method: &str, params: JsonValue) -> Result<JsonValue, RpcError> {
        let id = self.send_request(method, params).await;
        self.answer(&id, method).await
    }

    /// Sends a request without waiting; [`response`](Self::response) waits.
    pub async fn send_request(&self, method: &str, params: JsonValue) -> RequestId {
        let id = self.next_id();
        self.send_message(encode_request(&id, method, &params)).await;
        id
    }

    /// Waits for the response to a request.
    pub async fn response(&self, id: &RequestId) -> Result<JsonValue, RpcError> {
        self.answer(id, "a request").await
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<JsonValue>) {
        self.send_message(encode_notification(method, params.as_ref(), None)).await;
    }

    /// Waits for the next notification with this method, and returns its params.
    pub async fn notification(&self, method: &str) -> JsonValue {
        self.notification_where(method, |_| true).await
    }

    /// Like [`notification`](Self::notification), for params that match. Others stay for later waits.
    pub async fn notification_where(&self, method: &str, wanted: impl Fn(&JsonValue) -> bool) -> JsonValue {
        let mut message = self
            .0
            .inbox
            .take(&format!("notification {method}"), |message| {
                is_notification(message, method) && wanted(&message["params"])
            })
            .await;
        message["params"].take()
    }

    /// Params of every notification with this method so far, taken or not.
    pub fn notifications(&self, method: &str) -> Vec<JsonValue> {
        self.messages()
            .into_iter()
            .filter(|message| is_notification(message, method))
            .map(|mut message| message["params"].take())
            .collect()
    }

    /// Waits for the next server request with this method, and returns its id and params.
    pub async fn server_request(&self, method: &str) -> (RequestId, JsonValue) {
        let mut message = self
            .0
            .inbox
            .take(&format!("server request {method}"), |message| {
                message["method"] == method && message.get("id").is_some()
            })
            .await;
        (decode("a server request's id", message["id"].take()), message["params"].take())
    }

    /// Responds to a server request.
    pub async fn respond(&self, id: &RequestId, result: impl Serialize) {
        self.send_message(encode_response(id, &result)).await;
    }

    /// Responds to a server request with an error.
    pub async fn respond_error(&self, id: &RequestId, error: RpcError) {
        self.send_message(Ok(encode_error(id, &error))).await;
    }

    /// Sends any JSON as one message.
    pub async fn send(&self, message: &JsonValue) {
        self.send_message(serde_json::to_vec(message)).await;
    }

    /// Sends bytes unchanged: no newline is added to a line; on a websocket they are one text frame.
    pub async fn send_raw(&self, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.write(async |outgoing| outgoing.raw(bytes).await).await;
    }

    pub(crate) async fn send_frame(&self, frame: Frame) {
        self.write(async |outgoing| outgoing.frame(frame).await).await;
    }

    /// Ends the server's input. Its further messages can be read.
    pub async fn close(&self) {
        self.write(async |outgoing| {
            outgoing.close().await;
            Ok(())
        })
        .await;
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&self) {
        self.0.inbox.closed().await;
    }

    /// Every message so far, in order, taken or not.
    pub fn messages(&self) -> Vec<JsonValue> {
        self.0.inbox.messages()
    }

    /// Methods of all notifications and server requests, in order.
    pub fn methods(&self) -> Vec<String> {
        self.messages().iter().filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
    }

    /// Drops every message so far, for long runs.
    pub fn clear(&self) {
        self.0.inbox.clear();
    }

    fn next_id(&self) -> RequestId {
        RequestId::Integer(self.0.next_id.fetch_add(1, Ordering::Relaxed))
    }

    async fn answer(&self, id: &RequestId, method: &str) -> Result<JsonValue, RpcError> {
        let expected = serde_json::to_value(id).expect("an id is JSON");
        let mut message = self
            .0
            .inbox
            .take(&format!("answer to {method} with id {id}"), |message| {
                message.get("method").is_none() && message["id"] == expected
            })
            .await;
        match message.get_mut("error") {
            Some(error) => Err(decode("an error answer", error.take())),
            None => Ok(message["result"].take()),
        }
    }

    async fn send_message(&self, message: serde_json::Result<Vec<u8>>) {
        let message = message.expect("a message must be JSON");
        self.write(async |outgoing| outgoing.message(message).await).await;
    }

    /// A closed connection does not fail the send; the wait for a response does.
    async fn write(&self, write: impl AsyncFnOnce(&mut Outgoing) -> std::io::Result<()>) {
        let sent = async { write(&mut *self.0.outgoing.lock().await).await };
        if tokio::time::timeout(TIMEOUT, sent).await.is_err() {
            panic!("the server did not read its input for {TIMEOUT:?}{}", self.0.inbox.context());
        }
    }
}

pub(crate) fn decode<T: DeserializeOwned>(what: &str, value: JsonValue) -> T {
    T::deserialize(&value).unwrap_or_else(|error| panic!("{what} does not decode: {error}: {value}"))
}

fn is_notification(message: &JsonValue, method: &str) -> bool {
    message["method"] == method && message.get("id").is_none()
}

async fn read_lines(reader: impl AsyncRead + Unpin, inbox: Arc<Inbox>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
        inbox.receive(&line);
        line.clear();
    }
    inbox.close();
}

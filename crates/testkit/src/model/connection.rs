//! One connection of a client to the scripted model.

use std::io;
use std::sync::Arc;

use loomd_protocol::JsonValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::items::{Usage, completed_event, created_event};
use super::reply::{Body, Step};
use super::{ModelState, RecordedRequest, Reply};
use crate::http;
use crate::watched_value::WatchedValue;

/// Serves requests until the client disconnects or a reply closes the connection.
pub(super) async fn serve(stream: TcpStream, state: Arc<WatchedValue<ModelState>>) {
    // Otherwise the kernel may delay what a gate has let through.
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut wire = Wire { out: writer, drip: false };
    while let Ok(Some(request)) = read_request(&mut reader).await {
        let last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let (index, reply) = state.update(|state| state.answer(request));
        let played = tokio::select! {
            // A client that disconnects after the last byte has not cut the reply.
            biased;
            played = wire.play(reply, format!("resp_{index}")) => played,
            () = gone(&mut reader) => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        match played {
            Ok(NextAction::KeepAlive) if !last => {}
            Ok(_) => return,
            Err(_) => {
                state.update(|state| state.requests.get_mut(index).map(|request| request.abandoned = true));
                return;
            }
        }
    }
}

async fn read_request(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<RecordedRequest>> {
    let Some(head) = http::read_head(reader).await? else { return Ok(None) };
    let body = http::read_body(reader, &head.headers).await?.unwrap_or_default();
    Ok(Some(RecordedRequest::new(head, body)))
}

/// Resolves when the client has closed the connection. A further request is left unread.
async fn gone(reader: &mut BufReader<OwnedReadHalf>) {
    if reader.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty()) {
        std::future::pending::<()>().await;
    }
}

enum NextAction {
    KeepAlive,
    Close,
}

struct Wire {
    out: OwnedWriteHalf,
    drip: bool,
}

impl Wire {
    async fn play(&mut self, reply: Reply, id: String) -> io::Result<NextAction> {
        self.drip = reply.drip;
        for gate in &reply.after {
            gate.passed().await;
        }
        match reply.body {
            Body::Bytes(bytes) => {
                self.write(&bytes).await?;
                Ok(NextAction::Close)
            }
            Body::Whole { status, content_type, body } => {
                let length = format!("content-length: {}", body.len());
                self.write(&head(status, content_type, &length, &reply.headers)).await?;
                self.write(&body).await?;
                Ok(NextAction::KeepAlive)
            }
            Body::Stream(steps) => {
                let chunked = "transfer-encoding: chunked";
                self.write(&head(200, "text/event-stream", chunked, &reply.headers)).await?;
                let steps = if reply.raw { steps } else { complete(steps, &id, reply.unfinished) };
                self.stream(steps).await
            }
        }
    }

    async fn stream(&mut self, steps: Vec<Step>) -> io::Result<NextAction> {
        for step in steps {
            match step {
                Step::Event(event) => self.chunk(&encode(&event)).await?,
                Step::Half(event) => {
                    let bytes = encode(&event);
                    self.chunk(&bytes[..bytes.len() / 2]).await?;
                }
                Step::Bytes(bytes) => self.chunk(&bytes).await?,
                Step::Wait(gate) => gate.passed().await,
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Close => return Ok(NextAction::Close),
            }
        }
        self.write(b"0\r\n\r\n").await?;
        Ok(NextAction::KeepAlive)
    }

    async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let most = if self.drip { 1 } else { usize::MAX };
        for piece in bytes.chunks(most) {
            let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            self.write(&framed).await?;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.drip {
            return self.out.write_all(bytes).await;
        }
        for byte in bytes.chunks(1) {
            self.out.write_all(byte).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Adds the first and the last event, unless the script has them.
fn complete(mut steps: Vec<Step>, id: &str, unfinished: bool) -> Vec<Step> {
    let has = |steps: &[Step], kinds: &[&str]| {
        steps.iter().any(|step| match step {
            Step::Event(event) | Step::Half(event) => event["type"].as_str().is_some_and(|kind| kinds.contains(&kind)),
            _ => false,
        })
    };
    if !unfinished && !has(&steps, &["response.completed", "response.failed", "response.incomplete"]) {
        steps.push(Step::Event(completed_event(id, Usage::default())));
    }
    if !has(&steps, &["response.created"]) {
        let first = steps.iter().position(|step| matches!(step, Step::Event(_) | Step::Half(_)));
        steps.insert(first.unwrap_or(steps.len()), Step::Event(created_event(id)));
    }
    steps
}

fn encode(event: &JsonValue) -> Vec<u8> {
    let name = event["type"].as_str().unwrap_or("message");
    format!("event: {name}\ndata: {event}\n\n").into_bytes()
}

fn head(status: u16, content_type: &str, framing: &str, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n{framing}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    (head + "\r\n").into_bytes()
}

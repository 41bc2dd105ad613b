//! Websocket connections over TCP (with or without TLS) or a unix socket: one message per text frame.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Uri, header};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tracing::warn;

use super::{CLOSE_GRACE, Disconnect, MAX_MESSAGE, QUEUE, Transport, abandoned, tls};
use crate::{ConnectError, Websocket};

/// Ping interval, and time without any frame after which the connection counts as lost. Without pings, a connection
/// to a machine that lost power stays open for ever.
const PING_EVERY: Duration = Duration::from_secs(30);
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// Bytes of a refusal's body that are kept for the error.
const MAX_REFUSAL: usize = 1024;

pub(crate) async fn open_url(endpoint: &Websocket) -> Result<Transport, ConnectError> {
    let request = request(endpoint)?;
    let Address { secure, host, port } = Address::of(request.uri())?;
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    // Messages are small and must not be delayed to be sent together.
    stream.set_nodelay(true)?;
    if secure { open(tls::secure(stream, &host, endpoint).await?, request).await } else { open(stream, request).await }
}

pub(crate) async fn open_unix(path: &Path) -> Result<Transport, ConnectError> {
    let stream = UnixStream::connect(path).await?;
    open(stream, request(&Websocket::new("ws://localhost/"))?).await
}

fn request(endpoint: &Websocket) -> Result<Request, ConnectError> {
    let mut request = endpoint.url.as_str().into_client_request().map_err(|_| ConnectError::BadUrl)?;
    if let Some(token) = &endpoint.token {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(|_| ConnectError::BadToken)?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }
    Ok(request)
}

struct Address {
    secure: bool,
    host: String,
    port: u16,
}

impl Address {
    fn of(uri: &Uri) -> Result<Self, ConnectError> {
        let (secure, usual) = match uri.scheme_str() {
            Some("ws") => (false, 80),
            Some("wss") => (true, 443),
            Some(_) => return Err(ConnectError::NotWs),
            None => return Err(ConnectError::BadUrl),
        };
        let host = uri.host().ok_or(ConnectError::BadUrl)?;
        // An IPv6 address is in brackets, which are not part of the address.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { secure, host, port: uri.port_u16().unwrap_or(usual) })
    }
}

async fn open(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request,
) -> Result<Transport, ConnectError> {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let (socket, _) = client_async_with_config(request, stream, Some(config)).await.map_err(refusal)?;
    let (to_client, incoming) = mpsc::channel(QUEUE);
    let (outgoing, from_client) = mpsc::channel(QUEUE);
    let (tell, ended) = oneshot::channel();
    tokio::spawn(async move {
        let reason = pump(socket, to_client, from_client).await;
        _ = tell.send(Disconnect { reason, ..Disconnect::default() });
    });
    Ok(Transport { incoming, outgoing, ended: Box::pin(async { ended.await.unwrap_or_default() }) })
}

fn refusal(error: tungstenite::Error) -> ConnectError {
    match error {
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let body = String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL)]).trim().to_owned();
            ConnectError::Refused { status: response.status().as_u16(), body }
        }
        tungstenite::Error::Io(error) => error.into(),
        other => ConnectError::Handshake(other.to_string()),
    }
}

/// Passes messages in both directions until either side closes. Returns the reason, unless the client closed. Neither
/// direction waits for the other.
async fn pump<S: AsyncRead + AsyncWrite + Send + Unpin>(
    socket: WebSocketStream<S>,
    to_client: mpsc::Sender<Bytes>,
    from_client: mpsc::Receiver<Bytes>,
) -> Option<String> {
    let (sink, source) = socket.split();
    let last_frame = Mutex::new(Instant::now());
    let mut reading = pin!(read(source, to_client, &last_frame));
    tokio::select! {
        reason = &mut reading => Some(reason),
        reason = write(sink, from_client, &last_frame) => {
            if reason.is_none() {
                _ = timeout(CLOSE_GRACE, reading).await;
            }
            reason
        }
    }
}

/// Reads until the server closes, and returns the reason.
async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    mut source: SplitStream<WebSocketStream<S>>,
    to_client: mpsc::Sender<Bytes>,
    last_frame: &Mutex<Instant>,
) -> String {
    while let Some(frame) = source.next().await {
        *last_frame.lock() = Instant::now();
        match frame {
            Ok(Message::Text(text)) => _ = to_client.send(text.into()).await,
            Ok(Message::Binary(bytes)) => warn!(bytes = bytes.len(), "skipping a binary frame"),
            Ok(Message::Close(Some(frame))) if !frame.reason.is_empty() => {
                return format!("the server closed the connection: {} ({})", frame.reason, u16::from(frame.code));
            }
            Ok(Message::Close(Some(frame))) => {
                return format!("the server closed the connection ({})", u16::from(frame.code));
            }
            Ok(Message::Close(None)) => break,
            Ok(_) => {}
            Err(error) => return broken(&error),
        }
    }
    "the server closed the connection".to_owned()
}

/// Writes until the client closes (`None`) or the connection fails.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut from_client: mpsc::Receiver<Bytes>,
    last_frame: &Mutex<Instant>,
) -> Option<String> {
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            message = from_client.recv() => match message.map(Utf8Bytes::try_from) {
                Some(Ok(text)) => Message::Text(text),
                Some(Err(_)) => continue,
                None => Message::Close(None),
            },
            _ = pings.tick() => {
                if last_frame.lock().elapsed() > IDLE_LIMIT {
                    return Some(format!("no frame from the server for {IDLE_LIMIT:?}"));
                }
                Message::Ping(Bytes::new())
            }
        };
        let leaving = frame.is_close();
        let sent = tokio::select! {
            sent = sink.send(frame) => sent,
            () = abandoned(&from_client) => return None,
        };
        match sent {
            _ if leaving => return None,
            Ok(()) => {}
            Err(error) => return Some(broken(&error)),
        }
    }
}

fn broken(error: &tungstenite::Error) -> String {
    format!("connection failed: {error}")
}

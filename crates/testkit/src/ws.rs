//! [`WsServer`]: a server that listens for websockets on a TCP port or a unix socket.
//!
//! A [`WsConnection`] is a [`Peer`] that also receives and sends single frames. [`WsServer::connect_raw`] has no
//! peer: only the test reads such a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::Command;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
pub use tokio_tungstenite::tungstenite::protocol::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::inbox::Inbox;
use crate::outgoing::Outgoing;
use crate::watched_value::WatchedValue;
use crate::{CapturedOutput, HttpReply, Peer, Process, TIMEOUT, http};

/// The stream below a websocket.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A websocket that only the test reads and writes.
pub type RawWebSocket = WebSocketStream<Box<dyn Stream>>;

/// A running listener, started by [`Launch::websocket`](crate::Launch::websocket) and the like. Its process is a
/// [`Process`].
pub struct WsServer {
    process: Process,
    stdout: CapturedOutput,
    address: Address,
}

enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl WsServer {
    /// The error says why it does not listen.
    pub(crate) async fn spawn(mut command: Command, url: &str) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Process::spawn(command);
        let stdout = CapturedOutput::of(process.child().stdout.take().expect("stdout is piped"));
        let ready = listening(&mut process, url);
        match tokio::time::timeout(TIMEOUT, ready).await {
            Ok(address) => Ok(Self { address: address?, process, stdout }),
            Err(_) => Err(format!(
                "the server does not listen at {url} after {TIMEOUT:?}; stderr: {}",
                process.stderr().tail()
            )),
        }
    }

    /// The port of a TCP listener.
    pub fn port(&self) -> u16 {
        match &self.address {
            Address::Tcp(address) => address.port(),
            Address::Unix(path) => panic!("a unix socket has no port: {}", path.display()),
        }
    }

    /// A new connection, before its handshake.
    pub async fn connect(&self) -> WsConnection {
        self.connect_to("/", &[]).await
    }

    /// A new connection to a path, with additional headers in the upgrade request.
    pub async fn connect_to(&self, path: &str, headers: &[(&str, &str)]) -> WsConnection {
        WsConnection::new(self.connect_raw(path, headers).await, Some(self.process.stderr().clone()))
    }

    /// Like [`connect_to`](Self::connect_to), without a reader.
    pub async fn connect_raw(&self, path: &str, headers: &[(&str, &str)]) -> RawWebSocket {
        let mut request = format!("ws://127.0.0.1{path}").into_client_request().expect("a path makes a URL");
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a test's header has a valid name");
            request
                .headers_mut()
                .insert(name, HeaderValue::from_str(value).expect("a test's header has a valid value"));
        }
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let upgrade = client_async_with_config(request, self.stream().await, Some(config));
        match tokio::time::timeout(TIMEOUT, upgrade).await {
            Ok(Ok((socket, _))) => socket,
            Ok(Err(error)) => panic!("the server refused a websocket at {path}: {error}"),
            Err(_) => panic!("the server did not answer a websocket upgrade at {path} within {TIMEOUT:?}"),
        }
    }

    /// Sends a plain HTTP request.
    pub async fn http(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        let stream = self.stream().await;
        match tokio::time::timeout(TIMEOUT, http::get(stream, method, path, headers)).await {
            Ok(reply) => reply.unwrap_or_else(|error| panic!("{method} {path} got no HTTP answer: {error}")),
            Err(_) => panic!("{method} {path} got no answer within {TIMEOUT:?}"),
        }
    }

    /// The response to a websocket upgrade with these headers; 101 if it is accepted.
    pub async fn upgrade(&self, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        let key = generate_key();
        let mut all = vec![
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", key.as_str()),
        ];
        all.retain(|(name, _)| headers.iter().all(|(given, _)| !given.eq_ignore_ascii_case(name)));
        all.extend(headers);
        self.http("GET", path, &all).await
    }

    /// Its stdout, which should be empty.
    pub fn stdout(&self) -> &CapturedOutput {
        &self.stdout
    }

    async fn stream(&self) -> Box<dyn Stream> {
        open(&self.address).await.unwrap_or_else(|error| {
            panic!("cannot connect to the server: {error}; stderr: {}", self.process.stderr().tail())
        })
    }
}

impl Deref for WsServer {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for WsServer {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A websocket connection. Dropping it closes it without a closing handshake.
pub struct WsConnection {
    peer: Peer,
    frames: Arc<WatchedValue<Vec<Frame>>>,
}

impl WsConnection {
    /// A connection over any websocket.
    pub fn over(socket: RawWebSocket) -> Self {
        Self::new(socket, None)
    }

    fn new(socket: RawWebSocket, stderr: Option<CapturedOutput>) -> Self {
        let (sink, stream) = socket.split();
        let frames = Arc::new(WatchedValue::default());
        let kept = Arc::clone(&frames);
        let peer = Peer::new(Outgoing::Frames(sink), stderr, |inbox| read_frames(stream, inbox, kept));
        Self { peer, frames }
    }

    /// Every frame so far, in order; fragments of one message are joined.
    pub fn frames(&self) -> Vec<Frame> {
        self.frames.read(Vec::clone)
    }

    /// The first frame, past or future, that matches.
    pub async fn frame_where(&self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let found = self.frames.until(|frames| frames.iter().find(|frame| wanted(frame)).cloned());
        match tokio::time::timeout(TIMEOUT, found).await {
            Ok(frame) => frame,
            Err(_) => panic!("no {what} within {TIMEOUT:?}; frames so far: {:?}", self.frames()),
        }
    }

    pub async fn send_frame(&self, frame: Frame) {
        self.peer.send_frame(frame).await;
    }
}

impl Deref for WsConnection {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

async fn read_frames(mut stream: SplitStream<RawWebSocket>, inbox: Arc<Inbox>, frames: Arc<WatchedValue<Vec<Frame>>>) {
    while let Some(Ok(frame)) = stream.next().await {
        frames.update(|frames| frames.push(frame.clone()));
        match frame {
            Frame::Text(text) => inbox.receive(text.as_bytes()),
            Frame::Binary(bytes) => inbox.fail(format!("a binary frame of {} bytes", bytes.len())),
            Frame::Ping(_) | Frame::Pong(_) | Frame::Close(_) | Frame::Frame(_) => {}
        }
    }
    inbox.close();
}

async fn open(address: &Address) -> std::io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

/// Waits until the server listens and returns its address.
async fn listening(process: &mut Process, url: &str) -> Result<Address, String> {
    if let Some(path) = url.strip_prefix("unix://") {
        let address = Address::Unix(path.into());
        // A unix socket is not announced, so connecting is tried until it succeeds.
        while open(&address).await.is_err() {
            let running = process.child().try_wait().expect("a child can be asked");
            if running.is_some() {
                return Err(format!("the server exited instead of listening: {}", process.stderr().tail()));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        return Ok(address);
    }
    match process.stderr().find(announced).await {
        Some(address) => Ok(Address::Tcp(address)),
        None => Err(format!("the server exited without printing its address; stderr: {}", process.stderr().tail())),
    }
}

/// The first complete `ws://` address in the text. An unspecified address is replaced by the loopback.
fn announced(stderr: &str) -> Option<SocketAddr> {
    let (_, address) = stderr.split_once("ws://")?;
    let end = address.find(|c: char| !c.is_ascii_alphanumeric() && !".:[]".contains(c))?;
    let mut address: SocketAddr = address[..end].parse().ok()?;
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Some(address)
}

//! A connection to another server: a websocket over TCP, TLS or a unix socket. Of an attached console to its server, and
//! of a node to another one.

use std::path::PathBuf;
use std::str::FromStr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderName, HeaderValue};
use loomd_tls::{Roots, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::limits;

/// Headers of a connection between nodes: the id of the node; whether it acts for a client or for itself; whether its
/// client is on the network; what a session of the console may do.
pub(crate) const HEADER_NODE: HeaderName = HeaderName::from_static("x-loomd-node");
pub(crate) const HEADER_LINK: HeaderName = HeaderName::from_static("x-loomd-link");
pub(crate) const HEADER_REMOTE: HeaderName = HeaderName::from_static("x-loomd-remote");
pub(crate) const HEADER_ROLE: HeaderName = HeaderName::from_static("x-loomd-role");

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The server has answered, and does not want it.
    Refused(String),
    Unreached(String),
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(reason) | Self::Unreached(reason) => f.write_str(reason),
        }
    }
}

impl From<String> for ConnectError {
    fn from(reason: String) -> Self {
        Self::Unreached(reason)
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// `ws://HOST:PORT` or `wss://HOST:PORT`
    Websocket { secure: bool, host: String, port: u16, url: String },
    /// `unix://PATH`
    Unix(PathBuf),
}

/// The server that a console is for.
#[derive(Clone)]
pub struct Upstream {
    pub address: UpstreamAddress,
    /// Its bearer token.
    pub token: Option<String>,
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) type UpstreamSocket = WebSocketStream<Box<dyn Stream>>;

impl FromStr for UpstreamAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || "expected `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`".to_owned();
        if let Some(path) = text.strip_prefix("unix://") {
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(error()) };
        }
        let uri: axum::http::Uri = text.parse().map_err(|_| error())?;
        let (secure, usual) = match uri.scheme_str() {
            Some("ws") => (false, 80),
            Some("wss") => (true, 443),
            _ => return Err(error()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(error)?;
        // An IPv6 address is in brackets, which are not part of the address.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Websocket { secure, host, port: uri.port_u16().unwrap_or(usual), url: text.to_owned() })
    }
}

impl std::fmt::Display for UpstreamAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Websocket { url, .. } => f.write_str(url),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl Upstream {
    /// Connects; the error is a sentence for people.
    pub(crate) async fn connect(&self) -> Result<UpstreamSocket, String> {
        self.connect_with(&[]).await.map_err(|error| error.to_string())
    }

    /// The same with more headers.
    pub(crate) async fn connect_with(
        &self,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<UpstreamSocket, ConnectError> {
        match timeout(limits::HEADERS, self.open(headers)).await {
            Ok(opened) => opened,
            Err(_) => Err(ConnectError::Unreached("no answer".to_owned())),
        }
    }

    async fn open(&self, headers: &[(HeaderName, HeaderValue)]) -> Result<UpstreamSocket, ConnectError> {
        let (url, stream) = match &self.address {
            UpstreamAddress::Websocket { secure, host, port, url } => (url.as_str(), tcp(*secure, host, *port).await?),
            UpstreamAddress::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| error.to_string())?;
                ("ws://localhost/", Box::new(stream) as Box<dyn Stream>)
            }
        };
        let mut request = url.into_client_request().map_err(|error| error.to_string())?;
        if let Some(token) = &self.token {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut bearer = bearer.map_err(|_| "the token is no header value".to_owned())?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        request.headers_mut().extend(headers.iter().cloned());
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits::MAX_MESSAGE))
            .max_frame_size(Some(limits::MAX_MESSAGE));
        let opened = client_async_with_config(request, stream, Some(config)).await;
        opened.map(|(socket, _)| socket).map_err(|error| match error {
            tungstenite::Error::Http(response) => ConnectError::Refused(format!("it answers {}", response.status())),
            error => ConnectError::Unreached(error.to_string()),
        })
    }
}

async fn tcp(secure: bool, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    // Messages are small and must not be delayed to be sent together.
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    if !secure {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is no host name"))?;
    let connector = spawn_blocking(|| Roots::system().connector()).await.map_err(|error| error.to_string())?;
    let connector = connector.map_err(|error| error.to_string())?;
    Ok(Box::new(connector.connect(name, stream).await.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_websocket_or_a_unix_socket() {
        let parsed = |text: &str| text.parse::<UpstreamAddress>();
        let Ok(UpstreamAddress::Websocket { secure, host, port, .. }) = parsed("wss://agents.example/") else {
            panic!("expected a websocket")
        };
        assert_eq!((secure, host.as_str(), port), (true, "agents.example", 443));
        assert!(
            matches!(parsed("ws://[::1]:4500"), Ok(UpstreamAddress::Websocket { host, port: 4500, .. }) if host == "::1")
        );
        assert_eq!(parsed("unix:///run/a.sock"), Ok(UpstreamAddress::Unix("/run/a.sock".into())));
        for text in ["", "ws://", "http://a", "unix://a.sock", "unix://", "127.0.0.1:4500"] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert_eq!(parsed("wss://a:1/x").map(|address| address.to_string()), Ok("wss://a:1/x".to_owned()));
    }
}

//! Websockets, through the same proxies and with the same certificates as requests.

use hyper::HeaderMap;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, tungstenite};

use super::{Http, HttpError, Stream};

pub type WebSocket = WebSocketStream<Stream>;

/// Why a websocket was not opened.
#[derive(Debug, thiserror::Error)]
pub enum WebSocketError {
    #[error("{0}")]
    Connect(HttpError),
    #[error("{0}")]
    Handshake(tungstenite::Error),
}

impl Http {
    /// Opens a websocket at an `http`, `https`, `ws` or `wss` URL, and returns it with the response of the handshake.
    /// Messages above `max_message` bytes are errors.
    pub async fn open_websocket(
        &self,
        url: &str,
        headers: HeaderMap,
        max_message: usize,
    ) -> Result<(WebSocket, Response), WebSocketError> {
        let url = match url.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}"),
            Some(("http", rest)) => format!("ws://{rest}"),
            _ => url.into(),
        };
        let mut request = url.into_client_request().map_err(WebSocketError::Handshake)?;
        for (name, value) in &headers {
            request.headers_mut().insert(name, value.clone());
        }
        let stream = self.connect(request.uri()).await.map_err(WebSocketError::Connect)?;
        let config = WebSocketConfig::default().max_message_size(Some(max_message)).max_frame_size(Some(max_message));
        let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        opened.map_err(WebSocketError::Handshake)
    }
}

//! HTTP/1.1 to providers: a connection pool, and responses that are read by their consumer. A connection has no task of
//! its own: the future that waits for it drives it, so no task hop lies between the socket and the reader.

mod connect;
mod pool;
mod response;
mod stream;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, Uri};
use loomd_tls::TlsError;

use connect::Connector;
pub use connect::TlsFiles;
use pool::{Connection, ExchangeError, Pool};
pub use response::{HttpResponse, ResponseBody};
pub use stream::Stream;
pub use websocket::{WebSocket, WebSocketError};

/// The connections to providers, shared by all sessions of a process. Set up lazily: certificates are read when the
/// first `https` URL is called.
pub struct Http {
    connector: Connector,
    pool: Pool,
}

/// The largest body that [`Http::fetch`] returns.
const MAX_FETCHED: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HttpError {
    /// Connection refused, unknown host, or a TLS peer that is not accepted. Not worth many retries.
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Connect(String),
    #[error("no response within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("{0}")]
    Broken(String),
}

impl Http {
    /// Reads the settings of proxies and certificates from the environment.
    pub fn new(env: &dyn Fn(&str) -> Option<String>) -> Arc<Self> {
        Self::connecting_by(Connector::new(env, TlsFiles::default()))
    }

    /// Connections with certificates of their own. Fails when those cannot be used.
    pub fn with_tls(env: &dyn Fn(&str) -> Option<String>, files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        files.check()?;
        Ok(Self::connecting_by(Connector::new(env, files)))
    }

    fn connecting_by(connector: Connector) -> Arc<Self> {
        Arc::new(Self { connector, pool: Pool::default() })
    }

    /// Sends a request and returns the response with its whole body, within `limit`.
    pub async fn fetch(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Response<Bytes>, HttpError> {
        let fetch = async {
            let answer = self.exchange(request).await?;
            let mut response = Response::new(Bytes::new());
            (*response.status_mut(), *response.headers_mut()) = (answer.status, answer.headers);
            let body = answer.body.read(MAX_FETCHED + 1).await?;
            if body.len() > MAX_FETCHED {
                return Err(HttpError::Broken(format!("the response is larger than {MAX_FETCHED} bytes")));
            }
            *response.body_mut() = body.into();
            Ok(response)
        };
        tokio::time::timeout(limit, fetch).await.unwrap_or(Err(HttpError::Timeout(limit)))
    }

    /// Sends a request and returns once the response head has arrived, within `limit`.
    pub async fn send(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout(limit)),
        }
    }

    /// Opens a connection for a protocol other than HTTP.
    async fn connect(&self, uri: &Uri) -> Result<Stream, HttpError> {
        Ok(self.connector.connect(uri, true).await?.stream)
    }

    /// Sends a request on a pooled connection or a new one. If a pooled connection breaks, the request is repeated on a
    /// new one only if it cannot take effect twice: nothing of it was written, or its method is safe.
    async fn exchange(self: &Arc<Self>, request: Request<Full<Bytes>>) -> Result<HttpResponse, HttpError> {
        let origin = origin(request.uri());
        let mut request = request;
        if let Some(connection) = self.pool.take(&origin).await {
            let safe = request.method().is_safe().then(|| request.clone());
            match connection.exchange(request, self).await {
                Ok(answer) => return Ok(answer),
                Err(ExchangeError { error, unsent }) => {
                    tracing::debug!(%error, unsent = unsent.is_some(), "a pooled connection broke before the response");
                    request = unsent.or(safe).ok_or(error)?;
                }
            }
        }
        let opened = self.connector.connect(request.uri(), false).await?;
        let connection = Connection::open(opened, origin).await?;
        connection.exchange(request, self).await.map_err(|failed| failed.error)
    }
}

/// The key of the pool.
fn origin(uri: &Uri) -> Arc<str> {
    format!("{}://{}", uri.scheme_str().unwrap_or("http"), uri.authority().map_or("", |it| it.as_str())).into()
}

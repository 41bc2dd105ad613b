//! HTTP/1.1 to providers: connections that are idle and used again, and answers that are read where they are
//! needed. A connection has no task of its own: whoever waits for it drives it, so nothing stands between
//! the socket and the reader.

mod connect;
mod pool;
mod response;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, Uri};

use connect::Connector;
use pool::{Connection, ExchangeError, Pool};
pub(crate) use response::{HttpResponse, ResponseBody};
pub(crate) use stream::Stream;

/// Connections to providers, shared by all sessions of a process. Nothing is set up before it is used: no
/// certificates are read until an `https` address is called.
pub struct Http {
    connector: Connector,
    pool: Pool,
}

/// What [`Http::fetch`] takes in. Longer answers are for streams.
const MAX_FETCHED: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HttpError {
    /// The address leads nowhere: nobody listens, the name is unknown, or TLS does not accept the peer.
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Connect(String),
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("{0}")]
    Broken(String),
}

impl Http {
    /// Takes the settings of proxies and certificates from the environment.
    pub fn new(env: &dyn Fn(&str) -> Option<String>) -> Arc<Self> {
        Arc::new(Self { connector: Connector::new(env), pool: Pool::default() })
    }

    /// A request and its whole answer, for short ones. Takes no longer than this.
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
                return Err(HttpError::Broken(format!("the answer is longer than {MAX_FETCHED} bytes")));
            }
            *response.body_mut() = body.into();
            Ok(response)
        };
        tokio::time::timeout(limit, fetch).await.unwrap_or(Err(HttpError::Timeout(limit)))
    }

    /// Sends a request and waits for the head of the answer, at most so long.
    pub(crate) async fn send(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout(limit)),
        }
    }

    /// A connection for something other than HTTP.
    pub(crate) async fn connect(&self, uri: &Uri) -> Result<Stream, HttpError> {
        Ok(self.connector.connect(uri, true).await?.stream)
    }

    /// A request that breaks on a idle connection is sent again on a new one only if it cannot take effect twice:
    /// nothing of it was written, or its method is safe.
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

/// What connections are idle by.
fn origin(uri: &Uri) -> Arc<str> {
    format!("{}://{}", uri.scheme_str().unwrap_or("http"), uri.authority().map_or("", |it| it.as_str())).into()
}

//! One GET request: connect, ask, read a bounded answer, close.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::{ACCEPT, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Requirements are a page of text.
const MAX_ANSWER: usize = 1 << 20;

#[derive(Debug, Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Url(String),
    #[error("failed to connect: {0}")]
    Connect(#[from] io::Error),
    #[error("the request failed: {0}")]
    Request(#[from] hyper::Error),
    #[error("failed to read the answer: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// The status and the body.
pub(super) async fn get(url: &str, headers: &[(&str, String)]) -> Result<(u16, Bytes), HttpError> {
    let invalid = |reason: &dyn std::fmt::Display| HttpError::Url(format!("invalid address {url}: {reason}"));
    let uri: Uri = url.parse().map_err(|error| invalid(&error))?;
    let host = uri.host().ok_or_else(|| invalid(&"no host"))?;
    let is_tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path).header(HOST, authority).header(ACCEPT, "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request.body(Empty::new()).map_err(|error| invalid(&error))?;

    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    if is_tls {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| invalid(&error))?;
        send(tls()?.connect(name, stream).await?, request).await
    } else {
        send(stream, request).await
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<(u16, Bytes), HttpError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(HttpError::Body)?;
        Ok((status, body.to_bytes()))
    };
    // The connection ends when nothing more is asked; what went wrong with it is in the answer.
    let (answer, _) = tokio::join!(exchange, connection);
    answer
}

/// Trusts whom the machine trusts.
fn tls() -> Result<TlsConnector, HttpError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

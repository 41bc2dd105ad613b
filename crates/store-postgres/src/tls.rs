//! TLS to the database. Certificates are always verified.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use loomd_tls::{Roots, ServerName, TlsConnector, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};

use crate::Address;

/// The protocol's name in ALPN. Newer servers end connections that offer only others.
const ALPN: &[u8] = b"postgresql";

/// Makes TLS connections, or refuses to when none are wanted.
#[derive(Clone)]
pub(crate) struct Tls(Option<TlsConnector>);

impl Tls {
    /// Reads certificates when the address may need them. Blocks.
    pub fn new(address: &Address) -> Result<Self, String> {
        if !address.wants_tls() {
            return Ok(Self(None));
        }
        let mut roots = Roots::system();
        if let Some(path) = &address.root_certificates {
            let problem = |reason: String| format!("`sslrootcert` {}: {reason}", path.display());
            let pem = std::fs::read(path).map_err(|error| problem(error.to_string()))?;
            if roots.add_pem(&pem).map_err(|error| problem(error.to_string()))? == 0 {
                return Err(problem("no certificate in it".into()));
            }
        }
        roots.connector_for(ALPN).map(|connector| Self(Some(connector))).map_err(|error| error.to_string())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake { connector: self.0.clone(), host: host.to_owned() })
    }
}

/// One connection's handshake, which has not begun.
pub(crate) struct Handshake {
    connector: Option<TlsConnector>,
    host: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = self.connector.ok_or_else(|| io::Error::other("TLS is switched off"))?;
            let name = ServerName::try_from(self.host)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the host is no name that TLS can verify"))?;
            Ok(Stream(Box::new(connector.connect(name, stream).await?)))
        })
    }
}

/// An encrypted connection. It has no channel binding: certificates are verified instead.
pub(crate) struct Stream<S>(Box<TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

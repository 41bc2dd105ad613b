//! TLS for `wss://`. Trusted are the roots that come with us, those of the system, and those that the endpoint names.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto};

use crate::{ConnectError, Websocket};

pub(super) async fn secure(
    stream: TcpStream,
    host: &str,
    endpoint: &Websocket,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::BadUrl)?;
    Ok(connector(&endpoint.roots)?.connect(name, stream).await?)
}

/// Made for each connection: reading the system's certificates takes milliseconds, and connections are few.
fn connector(more: &[Vec<u8>]) -> Result<TlsConnector, ConnectError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for pem in more {
        let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| ConnectError::BadCertificate(error.to_string()))?;
        if found.is_empty() {
            return Err(ConnectError::BadCertificate("there is none in the PEM text".to_owned()));
        }
        for certificate in found {
            roots.add(certificate).map_err(|error| ConnectError::BadCertificate(error.to_string()))?;
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error: rustls::Error| ConnectError::Handshake(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A server that also speaks HTTP/2 must not choose it: websockets begin in the older one.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

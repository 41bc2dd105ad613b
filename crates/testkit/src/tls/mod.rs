//! [`Tls`]: a TLS proxy in front of a loopback listener.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::task::Task;

/// The key of the certificate, as PKCS #8.
pub(crate) const KEY: &[u8] = include_bytes!("localhost.key.der");

/// Decrypts connections and forwards them.
pub struct Tls {
    port: u16,
    _accepting: Task,
}

impl Tls {
    /// Its certificate and root, valid for `localhost` for a hundred years, for tests only.
    pub const CERTIFICATE: &str = include_str!("localhost.pem");

    pub async fn start(target: SocketAddr) -> Self {
        let certificate = CertificateDer::from_pem_slice(Self::CERTIFICATE.as_bytes()).expect("the certificate is one");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
        let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the default versions are supported")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key is that of the certificate");
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let accepting = Task::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let accepting = acceptor.accept(near);
                tokio::spawn(async move {
                    // A client that does not trust the certificate disconnects.
                    if let (Ok(mut near), Ok(mut far)) = (accepting.await, TcpStream::connect(target).await) {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        Self { port, _accepting: accepting }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

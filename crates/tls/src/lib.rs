//! TLS for outgoing connections. Trusts the built-in roots, the system's roots and those that are added. Offers one
//! protocol in ALPN: HTTP/1.1, in which websockets start and beside which no client here speaks HTTP/2, or the caller's.

use std::sync::Arc;

pub use tokio_rustls::TlsConnector;
pub use tokio_rustls::client::TlsStream;
pub use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto};

/// The trusted root certificates.
pub struct Roots(RootCertStore);

/// A certificate that identifies this client, with its key.
pub struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientCertificate {
    /// Reads a certificate chain and a private key in PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| TlsError::BadPem(error.to_string()))?;
        if chain.is_empty() {
            return Err(TlsError::BadPem("no certificate found".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::BadPem(error.to_string()))?;
        Ok(Self { chain, key })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{0}")]
    BadPem(String),
    #[error(transparent)]
    Setup(#[from] rustls::Error),
}

impl Roots {
    /// Returns the built-in roots and the system's. Reads files, which takes milliseconds.
    pub fn system() -> Self {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self(roots)
    }

    /// Trusts nothing yet.
    pub fn none() -> Self {
        Self(RootCertStore::empty())
    }

    /// Adds the certificates of a PEM text and returns how many were added. Certificates that cannot be used as roots
    /// are skipped, because the bundles of whole systems contain some.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<usize, TlsError> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| TlsError::BadPem(error.to_string()))?;
        Ok(self.0.add_parsable_certificates(certificates).0)
    }

    /// A connector for HTTP/1.1 and websockets.
    pub fn connector(self) -> Result<TlsConnector, TlsError> {
        self.connector_for(b"http/1.1")
    }

    /// A connector for HTTP/1.1 that identifies this client to servers that ask for it.
    pub fn connector_as(self, client: ClientCertificate) -> Result<TlsConnector, TlsError> {
        self.connector_with(b"http/1.1", Some(client))
    }

    /// A connector that offers one protocol in ALPN.
    pub fn connector_for(self, protocol: &[u8]) -> Result<TlsConnector, TlsError> {
        self.connector_with(protocol, None)
    }

    fn connector_with(self, protocol: &[u8], client: Option<ClientCertificate>) -> Result<TlsConnector, TlsError> {
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.0);
        let mut config = match client {
            Some(ClientCertificate { chain, key }) => config.with_client_auth_cert(chain, key)?,
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_without_certificates_adds_none_and_broken_pem_is_an_error() {
        let mut roots = Roots::none();
        assert_eq!(roots.add_pem(b"no certificate").ok(), Some(0));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(matches!(roots.add_pem(broken.as_bytes()), Err(TlsError::BadPem(_))));
        let useless = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(roots.add_pem(useless.as_bytes()).ok(), Some(0));
        assert!(roots.connector().is_ok());
    }
}

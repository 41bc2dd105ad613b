//! TLS for `wss://`, with the additional root certificates of the endpoint.

use loomd_tls::{Roots, ServerName, TlsConnector, TlsError, TlsStream};
use tokio::net::TcpStream;

use crate::{ConnectError, Websocket};

pub(super) async fn secure(
    stream: TcpStream,
    host: &str,
    endpoint: &Websocket,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::BadUrl)?;
    Ok(connector(&endpoint.roots)?.connect(name, stream).await?)
}

/// Built for each connection: reading the system's certificates takes milliseconds, and connections are few.
fn connector(more: &[Vec<u8>]) -> Result<TlsConnector, ConnectError> {
    let mut roots = Roots::system();
    for pem in more {
        if roots.add_pem(pem)? == 0 {
            return Err(ConnectError::BadCertificate("no usable certificate in the PEM text".to_owned()));
        }
    }
    Ok(roots.connector()?)
}

impl From<TlsError> for ConnectError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::BadPem(why) => Self::BadCertificate(why),
            TlsError::Setup(error) => Self::Handshake(error.to_string()),
        }
    }
}

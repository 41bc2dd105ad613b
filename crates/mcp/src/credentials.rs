//! Credentials for HTTP servers, supplied by those who keep them.

use hyper::header::{HeaderName, HeaderValue};
use loomd_protocol::McpAuthStatus;

use crate::caller::BoxFuture;
use crate::config::HttpServer;

/// A source of credentials for HTTP servers. Not asked about servers whose configuration authorizes requests itself.
pub trait Credentials: Send + Sync {
    /// Returns the headers that authorize the next request; none when there are no credentials for the server.
    fn authorize<'a>(
        &'a self,
        name: &'a str,
        server: &'a HttpServer,
    ) -> BoxFuture<'a, Result<Vec<(HeaderName, HeaderValue)>, CredentialsError>>;

    /// Called once after a request with these credentials got a 401. Returns whether to try again, with the headers
    /// that [`authorize`](Self::authorize) returns then.
    fn recover<'a>(&'a self, _name: &'a str, _server: &'a HttpServer) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Whether there is a login for the server, or could be one. May make requests.
    fn status<'a>(&'a self, name: &'a str, server: &'a HttpServer) -> BoxFuture<'a, McpAuthStatus>;
}

/// Why requests to a server cannot be authorized.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    #[error("not logged in")]
    NotLoggedIn,
    #[error("{0}")]
    Failed(String),
}

/// No credentials for any server.
pub struct NoCredentials;

impl Credentials for NoCredentials {
    fn authorize<'a>(
        &'a self,
        _: &'a str,
        _: &'a HttpServer,
    ) -> BoxFuture<'a, Result<Vec<(HeaderName, HeaderValue)>, CredentialsError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn status<'a>(&'a self, _: &'a str, _: &'a HttpServer) -> BoxFuture<'a, McpAuthStatus> {
        Box::pin(std::future::ready(McpAuthStatus::Unsupported))
    }
}

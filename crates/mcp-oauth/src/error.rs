//! What can go wrong. No error holds a secret.

use std::io;

use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    #[error("No authorization support detected")]
    Unsupported,
    #[error("{0}")]
    Unreachable(String),
    #[error("invalid MCP OAuth callback port `0`: port must be between 1 and 65535")]
    CallbackPort,
    #[error("invalid MCP OAuth callback URL `{0}`")]
    CallbackUrl(String),
    #[error("cannot listen for the OAuth callback on {address}: {error}")]
    Listen { address: String, error: io::Error },
    #[error("too many OAuth logins are waiting for a browser")]
    TooManyLogins,
    #[error("no random numbers: {0}")]
    Random(String),
    #[error("the authorization server does not support dynamic client registration")]
    NoRegistration,
    #[error("client registration failed: {0}")]
    Registration(String),
    #[error("`{field}` of the authorization server is not an acceptable URL: {url}")]
    Endpoint { field: &'static str, url: String },
    #[error("timed out waiting for OAuth callback")]
    TimedOut,
    /// The error that the authorization server redirected the browser with.
    #[error("OAuth provider returned `{error}`{}", .description.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Provider { error: String, description: Option<String> },
    /// The text for clients has no detail; the browser's page and the log do.
    #[error("failed to handle OAuth callback")]
    Callback { detail: String },
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The authorization server no longer accepts the stored tokens.
    #[error("the stored login is no longer accepted: {0}")]
    Refused(String),
    #[error("failed to refresh the OAuth token: {0}")]
    Refresh(String),
}

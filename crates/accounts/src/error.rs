//! Errors of account requests. Never contain secrets.

use std::io;

use crate::{MissingAccount, TokenError};

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error(
        "External auth is active. Use account/login/start (chatgptAuthTokens) to update it or account/logout to clear it."
    )]
    ExternalActive,
    #[error("API key login is disabled. Use ChatGPT login instead.")]
    KeyDisabled,
    #[error("ChatGPT login is disabled. Use API key login instead.")]
    ChatgptDisabled,
    #[error("invalid login id: {0}")]
    LoginId(String),
    #[error("device code login is not enabled for this Codex server. Use the browser login or verify the server URL.")]
    NoDeviceCodes,
    #[error("External ChatGPT auth is disabled. Use API key login instead.")]
    ExternalDisabled,
    #[error("External auth must use workspace {expected}, but received \"{received}\".")]
    WrongWorkspace { expected: String, received: String },
    #[error("Invalid request: {0}")]
    MissingAccount(MissingAccount),
    #[error("API key must not be empty")]
    EmptyKey,
    #[error("email and plan type are required for chatgpt authentication")]
    NoEmail,
    #[error("codex account authentication required to read rate limits")]
    NoLimits,
    #[error("chatgpt authentication required to read rate limits")]
    NoLimitsOfKeys,
    #[error("Token data is not available.")]
    NoTokens,
    #[error("failed to start login server: {0}")]
    LoginServer(String),
    #[error("failed to request device code: {0}")]
    DeviceCode(String),
    #[error("failed to construct backend client: {0}")]
    Backend(String),
    #[error("failed to fetch codex rate limits: {0}")]
    RateLimits(String),
    #[error("failed to set external auth: {0}")]
    ExternalTokens(TokenError),
    #[error("failed to save api key: {0}")]
    SaveKey(io::Error),
    #[error("logout failed: {0}")]
    Logout(io::Error),
}

impl AccountError {
    /// Whether the request was refused, and not failed: the caller has to change something.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::ExternalActive
            | Self::KeyDisabled
            | Self::ChatgptDisabled
            | Self::LoginId(_)
            | Self::NoDeviceCodes
            | Self::ExternalDisabled
            | Self::WrongWorkspace { .. }
            | Self::MissingAccount(_)
            | Self::EmptyKey
            | Self::NoEmail
            | Self::NoLimits
            | Self::NoLimitsOfKeys => true,
            Self::NoTokens
            | Self::LoginServer(_)
            | Self::DeviceCode(_)
            | Self::Backend(_)
            | Self::RateLimits(_)
            | Self::ExternalTokens(_)
            | Self::SaveKey(_)
            | Self::Logout(_) => false,
        }
    }
}

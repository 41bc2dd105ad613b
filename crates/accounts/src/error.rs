//! Why something about accounts could not be done. Says nothing secret.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error(
        "External auth is active. Use account/login/start (chatgptAuthTokens) to update it or account/logout to clear it."
    )]
    ExternalActive,
    #[error("API key login is disabled. Use ChatGPT login instead.")]
    KeyDisabled,
    #[error("API key must not be empty")]
    EmptyKey,
    #[error("email and plan type are required for chatgpt authentication")]
    NoEmail,
    #[error("Token data is not available.")]
    NoTokens,
    #[error("failed to save api key: {0}")]
    SaveKey(io::Error),
    #[error("logout failed: {0}")]
    Logout(io::Error),
}

impl AccountError {
    /// The caller must change something; nothing went wrong here.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::ExternalActive | Self::KeyDisabled | Self::EmptyKey | Self::NoEmail => true,
            Self::NoTokens | Self::SaveKey(_) | Self::Logout(_) => false,
        }
    }
}

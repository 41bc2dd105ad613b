//! Why a call of a model failed, and what that means to the caller.

use std::time::Duration;

use loomd_protocol::{CodexErrorInfo, RateLimitSnapshot};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("stream disconnected before completion: {message}")]
    Disconnected { message: String, retry_after: Option<Duration> },
}

impl ModelError {
    /// Whether the caller may try the call again.
    pub fn retryable(&self) -> bool {
        true
    }

    /// How long the provider asks to wait before that.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Disconnected { retry_after, .. } => *retry_after,
        }
    }

    /// What the user is told.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// What programs are told.
    pub fn info(&self) -> CodexErrorInfo {
        CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None }
    }

    /// The status of the answer, if there was one.
    pub fn http_status(&self) -> Option<u16> {
        None
    }

    /// More than the message says.
    pub fn details(&self) -> Option<String> {
        None
    }

    pub fn is_context_window_exceeded(&self) -> bool {
        false
    }

    pub fn is_invalid_image(&self) -> bool {
        false
    }

    /// What the refusal said about the limit that was hit.
    pub fn rate_limits(&self) -> Option<&RateLimitSnapshot> {
        None
    }
}

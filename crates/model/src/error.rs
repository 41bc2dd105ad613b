//! Why a call of a model failed, what the user and programs are told about it, and whether to try again.

use std::time::Duration;

use loomd_protocol::{CodexErrorInfo, RateLimitSnapshot};

use crate::retry::MAX_ASKED_DELAY;

/// A failed call. Its `Display` is what the user is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// 400.
    #[error("{message}")]
    BadRequest { message: String, body: String },
    #[error("Invalid image in your last message. Please remove it and try again.")]
    InvalidImage,
    /// Any other answer that is no success and means nothing special.
    #[error("{message}")]
    Status { status: u16, message: String, retry_after: Option<Duration> },
    /// A plain 429.
    #[error("exceeded retry limit, last status: 429 Too Many Requests{}", suffix("request id", request_id))]
    TooManyRequests { request_id: Option<String>, retry_after: Option<Duration> },
    #[error("{message}")]
    UsageLimit { message: String, rate_limits: Box<RateLimitSnapshot> },
    #[error("To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.")]
    UsageNotIncluded,
    #[error("Quota exceeded. Check your plan and billing details.")]
    QuotaExceeded,
    /// 500.
    #[error("We're currently experiencing high demand, which may cause temporary errors.")]
    HighDemand { retry_after: Option<Duration> },
    #[error("Selected model is at capacity. Please try a different model.")]
    Overloaded,
    #[error(
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying."
    )]
    ContextWindowExceeded,
    #[error("{0}")]
    InvalidPrompt(String),
    /// There was no answer at all.
    #[error("stream disconnected before completion: error sending request for url ({url})")]
    Connect { url: String, cause: String },
    /// The answer broke off, or said that it failed.
    #[error("stream disconnected before completion: {message}")]
    Disconnected { message: String, retry_after: Option<Duration> },
    #[error("Missing environment variable: `{variable}`.{}", instructions.as_ref().map(|text| format!(" {text}")).unwrap_or_default())]
    MissingKey { variable: String, instructions: Option<String> },
    /// There are credentials, but no use in trying with them.
    #[error("{0}")]
    Unauthorized(String),
    /// Credentials could not be had this time.
    #[error("{0}")]
    Credentials(String),
    /// The provider cannot do this.
    #[error("{0}")]
    Unsupported(String),
}

impl ModelError {
    pub(crate) fn disconnected(message: impl Into<String>) -> Self {
        Self::Disconnected { message: message.into(), retry_after: None }
    }

    /// Whether the caller may try the call again.
    pub fn retryable(&self) -> bool {
        let worth_it = self.retry_after().is_none_or(|delay| delay <= MAX_ASKED_DELAY);
        match self {
            Self::Status { .. }
            | Self::TooManyRequests { .. }
            | Self::HighDemand { .. }
            | Self::Connect { .. }
            | Self::Disconnected { .. }
            | Self::Credentials(_) => worth_it,
            Self::BadRequest { .. }
            | Self::InvalidImage
            | Self::UsageLimit { .. }
            | Self::UsageNotIncluded
            | Self::QuotaExceeded
            | Self::Overloaded
            | Self::ContextWindowExceeded
            | Self::InvalidPrompt(_)
            | Self::MissingKey { .. }
            | Self::Unauthorized(_)
            | Self::Unsupported(_) => false,
        }
    }

    /// How long the provider asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. }
            | Self::TooManyRequests { retry_after, .. }
            | Self::HighDemand { retry_after }
            | Self::Disconnected { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What the user is told.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// What programs are told.
    pub fn info(&self) -> CodexErrorInfo {
        match self {
            Self::BadRequest { .. } | Self::InvalidImage | Self::InvalidPrompt(_) => CodexErrorInfo::BadRequest,
            Self::Status { status: 401, .. } | Self::Unauthorized(_) => CodexErrorInfo::Unauthorized,
            Self::Status { status, .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: Some(*status) },
            Self::TooManyRequests { .. } => {
                CodexErrorInfo::ResponseTooManyFailedAttempts { http_status_code: Some(429) }
            }
            Self::UsageLimit { .. } | Self::UsageNotIncluded | Self::QuotaExceeded => {
                CodexErrorInfo::UsageLimitExceeded
            }
            Self::HighDemand { .. } => CodexErrorInfo::InternalServerError,
            Self::Overloaded => CodexErrorInfo::ServerOverloaded,
            Self::ContextWindowExceeded => CodexErrorInfo::ContextWindowExceeded,
            Self::Connect { .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: None },
            Self::Disconnected { .. } => CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None },
            Self::MissingKey { .. } | Self::Credentials(_) | Self::Unsupported(_) => CodexErrorInfo::Other,
        }
    }

    /// The status of the answer, where it is what went wrong.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::BadRequest { .. } | Self::InvalidImage => Some(400),
            Self::TooManyRequests { .. } => Some(429),
            Self::HighDemand { .. } => Some(500),
            _ => None,
        }
    }

    /// What there is to know beyond the message.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::BadRequest { message, body } if message != body => Some(body.clone()),
            Self::Connect { cause, .. } if !cause.is_empty() => Some(cause.clone()),
            _ => None,
        }
    }

    pub fn is_context_window_exceeded(&self) -> bool {
        matches!(self, Self::ContextWindowExceeded)
    }

    pub fn is_invalid_image(&self) -> bool {
        matches!(self, Self::InvalidImage)
    }

    /// What a refusal said about the limit that was hit.
    pub fn rate_limits(&self) -> Option<&RateLimitSnapshot> {
        match self {
            Self::UsageLimit { rate_limits, .. } => Some(rate_limits),
            _ => None,
        }
    }
}

fn suffix(what: &str, value: &Option<String>) -> String {
    value.as_ref().map(|value| format!(", {what}: {value}")).unwrap_or_default()
}

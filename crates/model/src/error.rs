//! Errors of model calls: the message for the user, the [`CodexErrorInfo`] for clients, and whether to retry.

use std::time::Duration;

use loomd_protocol::{CodexErrorInfo, RateLimitSnapshot};

use crate::TokenUsage;
use crate::http::HttpError;
use crate::retry::MAX_RETRY_AFTER;
use crate::sse::TooLong;

/// Why a model call failed. `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// 400, 413 or 422.
    #[error("{message}")]
    BadRequest { message: String, body: String },
    #[error("Invalid image in your last message. Please remove it and try again.")]
    InvalidImage,
    /// An error status without a meaning of its own.
    #[error("{message}")]
    Status { status: u16, message: String, retry_after: Option<Duration> },
    /// A 429 that is not about quota or a plan.
    #[error("exceeded retry limit, last status: 429 Too Many Requests{}", suffix("request id", request_id))]
    TooManyRequests { request_id: Option<String>, provider_message: Option<String>, retry_after: Option<Duration> },
    #[error("{message}")]
    UsageLimit { message: String, rate_limits: Box<RateLimitSnapshot> },
    #[error("To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.")]
    UsageNotIncluded,
    #[error("Quota exceeded. Check your plan and billing details.")]
    QuotaExceeded { provider_message: Option<String> },
    /// 500.
    #[error("We're currently experiencing high demand, which may cause temporary errors.")]
    HighDemand { provider_message: Option<String>, retry_after: Option<Duration> },
    #[error("Selected model is at capacity. Please try a different model.")]
    Overloaded { provider_message: Option<String> },
    #[error(
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying."
    )]
    ContextWindowExceeded { provider_message: Option<String> },
    #[error("{0}")]
    InvalidPrompt(String),
    /// A failure that the provider names by a code that clients know.
    #[error("{message}")]
    Named { failure: NamedFailure, message: String, retry_after: Option<Duration> },
    /// No connection could be made, so nothing was sent.
    #[error("stream disconnected before completion: error sending request for url ({url}): {cause}")]
    Unreachable { url: String, cause: String },
    /// No response arrived.
    #[error("stream disconnected before completion: error sending request for url ({url})")]
    Connect { url: String, cause: String },
    /// A success status with a body that is neither an event stream nor a complete response.
    #[error("stream disconnected before completion: the response is {found}, not a stream of events, url: {url}")]
    NotAStream { found: String, url: String },
    /// The model stopped early for a reason that a retry would meet again.
    #[error("stream disconnected before completion: Incomplete response returned, reason: {reason}")]
    Incomplete { reason: String, usage: Option<TokenUsage> },
    /// The stream broke off, or reported a failure.
    #[error("stream disconnected before completion: {message}")]
    Disconnected { message: String, retry_after: Option<Duration> },
    #[error("Missing environment variable: `{variable}`.{}", instructions.as_ref().map(|text| format!(" {text}")).unwrap_or_default())]
    MissingKey { variable: String, instructions: Option<String> },
    /// There are credentials, but they cannot be used.
    #[error("{0}")]
    Unauthorized(String),
    /// The credentials could not be obtained this time.
    #[error("{0}")]
    Credentials(String),
    /// The provider does not support this.
    #[error("{0}")]
    Unsupported(String),
}

/// Failures that providers name by a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFailure {
    RateLimit,
    ModelNotFound,
    CyberPolicy,
    MisalignmentPolicy,
    PolicyCapacity,
    FlexCapacity,
}

impl NamedFailure {
    /// The failure that a code names.
    pub(crate) fn of(code: &str) -> Option<Self> {
        Some(match code {
            "rate_limit_exceeded" => Self::RateLimit,
            "model_not_found" => Self::ModelNotFound,
            "cyber_policy" => Self::CyberPolicy,
            "misalignment_policy_violation" => Self::MisalignmentPolicy,
            "policy_capacity_unavailable" => Self::PolicyCapacity,
            "flex_unavailable" => Self::FlexCapacity,
            _ => return None,
        })
    }

    /// The code of the failure.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit_exceeded",
            Self::ModelNotFound => "model_not_found",
            Self::CyberPolicy => "cyber_policy",
            Self::MisalignmentPolicy => "misalignment_policy_violation",
            Self::PolicyCapacity => "policy_capacity_unavailable",
            Self::FlexCapacity => "flex_unavailable",
        }
    }

    /// The message for the user, with that of the provider.
    pub(crate) fn message(self, provider_message: Option<String>) -> String {
        match (self, provider_message) {
            (Self::RateLimit, message) => {
                let message = message.unwrap_or_else(|| "rate limit exceeded".into());
                format!("stream disconnected before completion: {message}")
            }
            (Self::PolicyCapacity, _) => "There is no capacity to check this request now. Try again later.".into(),
            (Self::FlexCapacity, _) => {
                "There is no capacity in the flex tier now. Try again later, or use another tier.".into()
            }
            (_, Some(message)) => message,
            (Self::ModelNotFound, None) => "The provider does not know the model.".into(),
            (Self::CyberPolicy | Self::MisalignmentPolicy, None) => "The provider refused the request.".into(),
        }
    }

    fn info(self) -> CodexErrorInfo {
        match self {
            Self::RateLimit => CodexErrorInfo::RateLimitExceeded,
            Self::ModelNotFound => CodexErrorInfo::ModelNotFound,
            Self::CyberPolicy => CodexErrorInfo::CyberPolicy,
            Self::MisalignmentPolicy => CodexErrorInfo::MisalignmentPolicyViolation,
            Self::PolicyCapacity => CodexErrorInfo::PolicyCapacityUnavailable,
            Self::FlexCapacity => CodexErrorInfo::FlexUnavailable,
        }
    }
}

impl ModelError {
    pub(crate) fn disconnected(message: impl Into<String>) -> Self {
        Self::Disconnected { message: message.into(), retry_after: None }
    }

    /// The error of a request without a response.
    pub(crate) fn unanswered(url: String, error: HttpError) -> Self {
        match error {
            HttpError::Unreachable(cause) => Self::Unreachable { url, cause },
            error => Self::Connect { url, cause: error.to_string() },
        }
    }

    /// The error of a response that stopped early. Reasons that a retry would meet again are not retryable.
    pub(crate) fn incomplete(reason: &str, usage: Option<TokenUsage>) -> Self {
        match reason {
            "max_output_tokens" | "content_filter" => Self::Incomplete { reason: reason.into(), usage },
            _ => Self::disconnected(format!("Incomplete response returned, reason: {reason}")),
        }
    }

    /// Whether the caller may retry the call. False for a `retry-after` beyond [`MAX_RETRY_AFTER`].
    pub fn retryable(&self) -> bool {
        let worth_it = self.retry_after().is_none_or(|delay| delay <= MAX_RETRY_AFTER);
        match self {
            Self::Status { status, .. } => worth_it && is_transient(*status),
            Self::TooManyRequests { .. }
            | Self::HighDemand { .. }
            | Self::Connect { .. }
            | Self::Disconnected { .. }
            | Self::Credentials(_) => worth_it,
            // The others are about the request or the account, which stay the same.
            Self::Named { failure, .. } => worth_it && *failure == NamedFailure::RateLimit,
            Self::BadRequest { .. }
            | Self::InvalidImage
            | Self::UsageLimit { .. }
            | Self::UsageNotIncluded
            | Self::QuotaExceeded { .. }
            | Self::Overloaded { .. }
            | Self::ContextWindowExceeded { .. }
            | Self::InvalidPrompt(_)
            | Self::Unreachable { .. }
            | Self::NotAStream { .. }
            | Self::Incomplete { .. }
            | Self::MissingKey { .. }
            | Self::Unauthorized(_)
            | Self::Unsupported(_) => false,
        }
    }

    /// The wait that the provider asks for before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. }
            | Self::TooManyRequests { retry_after, .. }
            | Self::HighDemand { retry_after, .. }
            | Self::Named { retry_after, .. }
            | Self::Disconnected { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The message for the user.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The error code for clients.
    pub fn info(&self) -> CodexErrorInfo {
        match self {
            Self::BadRequest { .. } | Self::InvalidImage | Self::InvalidPrompt(_) => CodexErrorInfo::BadRequest,
            Self::Named { failure, .. } => failure.info(),
            Self::Status { status: 401, .. } | Self::Unauthorized(_) => CodexErrorInfo::Unauthorized,
            Self::Status { status, .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: Some(*status) },
            Self::TooManyRequests { .. } => {
                CodexErrorInfo::ResponseTooManyFailedAttempts { http_status_code: Some(429) }
            }
            Self::UsageLimit { .. } | Self::UsageNotIncluded | Self::QuotaExceeded { .. } => {
                CodexErrorInfo::UsageLimitExceeded
            }
            Self::HighDemand { .. } => CodexErrorInfo::InternalServerError,
            Self::Overloaded { .. } => CodexErrorInfo::ServerOverloaded,
            Self::ContextWindowExceeded { .. } => CodexErrorInfo::ContextWindowExceeded,
            Self::Unreachable { .. } | Self::Connect { .. } => {
                CodexErrorInfo::HttpConnectionFailed { http_status_code: None }
            }
            Self::NotAStream { .. } => CodexErrorInfo::HttpConnectionFailed { http_status_code: Some(200) },
            Self::Incomplete { .. } | Self::Disconnected { .. } => {
                CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None }
            }
            Self::MissingKey { .. } | Self::Credentials(_) | Self::Unsupported(_) => CodexErrorInfo::Other,
        }
    }

    /// The HTTP status, where it is the cause.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::BadRequest { .. } | Self::InvalidImage => Some(400),
            Self::TooManyRequests { .. } => Some(429),
            Self::HighDemand { .. } => Some(500),
            _ => None,
        }
    }

    /// Returns what the message leaves out: the provider's own message, its `retry-after`, and what the user can do.
    /// `provider` is its id.
    pub fn details(&self, provider: &str) -> Option<String> {
        match self {
            Self::BadRequest { message, body } => (message != body).then(|| body.clone()),
            Self::Status { status, .. } => {
                let hint = hint(*status).map(|hint| format!("provider `{provider}`: {hint}"));
                join([hint, self.retry_after_text()])
            }
            Self::TooManyRequests { provider_message, .. }
            | Self::QuotaExceeded { provider_message }
            | Self::HighDemand { provider_message, .. }
            | Self::Overloaded { provider_message }
            | Self::ContextWindowExceeded { provider_message } => {
                let quoted = provider_message.as_ref().map(|text| format!("provider `{provider}` said: {text}"));
                join([quoted, self.retry_after_text()])
            }
            Self::Connect { cause, .. } => Some(format!("provider `{provider}`: {cause}")),
            Self::Unreachable { .. } => Some(format!(
                "provider `{provider}` cannot be reached: check that its server runs and that `base_url` is right"
            )),
            Self::NotAStream { .. } => Some(format!("provider `{provider}`: check its `base_url` and `wire_api`")),
            Self::Incomplete { reason, .. } => Some(match &**reason {
                "max_output_tokens" => "the output limit of the model was reached; ask it to continue".into(),
                _ => format!("provider `{provider}` stopped the answer"),
            }),
            // Clients of the older release are only told of a bad request.
            Self::Named { failure: failure @ NamedFailure::ModelNotFound, .. } => {
                Some(format!("provider `{provider}`: {}", failure.code()))
            }
            Self::Disconnected { .. } | Self::Named { .. } => self.retry_after_text(),
            Self::InvalidImage
            | Self::UsageLimit { .. }
            | Self::UsageNotIncluded
            | Self::InvalidPrompt(_)
            | Self::MissingKey { .. }
            | Self::Unauthorized(_)
            | Self::Credentials(_)
            | Self::Unsupported(_) => None,
        }
    }

    /// The cause without the URL, for lists that show the provider and its address already.
    pub fn cause(&self) -> String {
        match self {
            Self::Unreachable { cause, .. } | Self::Connect { cause, .. } => cause.clone(),
            other => other.message(),
        }
    }

    fn retry_after_text(&self) -> Option<String> {
        self.retry_after().map(|delay| format!("it asks to wait {} s", delay.as_secs_f64().ceil()))
    }

    /// The token usage of a response that stopped early, if the provider reported it.
    pub fn usage(&self) -> Option<&TokenUsage> {
        match self {
            Self::Incomplete { usage, .. } => usage.as_ref(),
            _ => None,
        }
    }

    /// Whether the response stopped early for good, so the caller keeps what arrived.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::Incomplete { .. })
    }

    pub fn is_context_window_exceeded(&self) -> bool {
        matches!(self, Self::ContextWindowExceeded { .. })
    }

    pub fn is_invalid_image(&self) -> bool {
        matches!(self, Self::InvalidImage)
    }

    /// The rate limits that a refused call reported.
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

/// Not retryable: the same event would be sent again.
impl From<TooLong> for ModelError {
    fn from(error: TooLong) -> Self {
        Self::Unsupported(format!("stream disconnected before completion: {error}"))
    }
}

/// Statuses that may change on a retry.
fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429) || (status >= 500 && !matches!(status, 501 | 505))
}

/// What the user can do about a status.
fn hint(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("the credentials were not accepted; check the key or sign in again"),
        403 => Some("the credentials do not allow this; check the account's access to the model"),
        404 => Some("unknown URL or model; check `base_url` and the model's name"),
        _ => None,
    }
}

fn join<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

//! The errors of requests, with messages for the client.

use loomd_config::CloudError;
use loomd_protocol::NonSteerableTurnKind;
use loomd_store::{Error, RequestKey, ThreadId};
use thiserror::Error as ThisError;

/// The most characters that one input may have.
pub const MAX_INPUT_CHARS: usize = 1 << 20;

/// A request that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Refusal {
    /// The request is invalid in the current state.
    #[error("{0}")]
    Invalid(String),
    /// The request is valid and failed for another reason.
    #[error("{0}")]
    Failed(String),
    /// Another process has the thread now. What this one was doing about it may have taken effect.
    #[error("{0}")]
    LeaseLost(String),
    /// The running turn cannot be steered.
    #[error("{message}")]
    NotSteerable { message: String, turn_kind: NonSteerableTurnKind },
    /// The organisation's requirements are not known, so no thread is opened.
    #[error("{message}")]
    RequirementsUnavailable { message: String, cause: CloudError },
    /// An MCP server refused, with a code of its own.
    #[error("{message}")]
    OfServer { code: i64, message: String },
    /// The key of a request was used for one with other params.
    #[error("{field} {key:?} was used for another {method} request")]
    IdempotencyConflict { method: &'static str, field: &'static str, key: String },
    /// The input has more than [`MAX_INPUT_CHARS`] characters.
    #[error("Input exceeds the maximum length of {MAX_INPUT_CHARS} characters.")]
    InputTooLarge { chars: usize },
}

impl Refusal {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn not_found(id: ThreadId) -> Self {
        Self::Invalid(format!("thread not found: {id}"))
    }

    pub(crate) fn idempotency_conflict(request: &RequestKey) -> Self {
        let (method, key) = (request.method, request.key.clone());
        Self::IdempotencyConflict { method, field: key_field(method), key }
    }

    pub(crate) fn no_rollout(id: ThreadId) -> Self {
        Self::Invalid(format!("no rollout found for thread id {id}"))
    }
}

/// The param that has the key of a request.
pub(crate) fn key_field(method: &str) -> &'static str {
    if method.starts_with("turn/") { "clientUserMessageId" } else { "idempotencyKey" }
}

/// Errors of the store that the request caused are `Invalid`, all others `Failed`.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound { .. } | Error::Misplaced { .. } | Error::Held { .. } => Self::Invalid(error.to_string()),
            Error::StaleLease { .. } => Self::LeaseLost(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

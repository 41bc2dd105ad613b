//! [`EvaluateError`]: why a prompt has no result, in the phases of an evaluation.

use std::fmt;

use loomd_client::protocol::{CodexErrorInfo, TurnError};
use loomd_client::{Disconnect, Error};
use serde_json::Value;
use thiserror::Error as ThisError;

use crate::expansion::Expansion;
use crate::limits::TokenUsage;

/// Bytes of stderr in an error.
const STDERR_TAIL: usize = 8 * 1024;

#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum EvaluateError {
    #[error(transparent)]
    Failed(Box<Failure>),
    /// Not a failure: a tool needs hidden sections. [`Prompt::expand`](crate::Prompt::expand) shows them for the next
    /// evaluation.
    #[error("{0}")]
    Expansion(Expansion),
}

impl EvaluateError {
    /// The failure; `None` for an expansion.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Expansion(_) => None,
        }
    }

    pub fn phase(&self) -> Option<Phase> {
        self.failure().map(|failure| failure.phase)
    }
}

impl From<Box<Failure>> for EvaluateError {
    fn from(failure: Box<Failure>) -> Self {
        Self::Failed(failure)
    }
}

/// The part of an evaluation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Connecting, signing in, opening the thread or starting the turn; also a deadline, and a provider that cannot be
    /// reached.
    Request,
    /// The turn failed, or its output does not fit.
    Response,
    /// A tool ended the evaluation, or the sandbox failed.
    Tool,
    /// The budget is exceeded, or the account's limit is reached.
    Budget,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Tool => "tool",
            Self::Budget => "budget",
        })
    }
}

/// What failed, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// A setting of the adapter is invalid, or the output type has no strict schema.
    Settings,
    Connect,
    Login,
    Thread,
    /// `turn/start` was refused.
    TurnStart,
    /// The turn ended with status `failed`.
    TurnFailed,
    /// The turn was interrupted by another client.
    Interrupted,
    /// The connection was lost, or the server was silent for too long.
    Connection,
    Output,
    Deadline,
    Budget,
    Tool,
}

/// Why a prompt has no result.
#[derive(Clone, Debug, ThisError)]
#[error("{phase}: {message}")]
#[non_exhaustive]
pub struct Failure {
    pub phase: Phase,
    pub kind: FailureKind,
    /// `namespace/key` of the prompt.
    pub prompt: String,
    pub message: String,
    /// The kind of a failed turn's error.
    pub error_info: Option<CodexErrorInfo>,
    pub additional_details: Option<String>,
    /// The end of the stderr of a server that was spawned, up to 8 KiB.
    pub stderr: Option<String>,
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
    /// What the turn has used.
    pub usage: Option<TokenUsage>,
}

impl Failure {
    pub(crate) fn new(phase: Phase, kind: FailureKind, message: impl fmt::Display) -> Box<Self> {
        Box::new(Self {
            phase,
            kind,
            prompt: String::new(),
            message: message.to_string(),
            error_info: None,
            additional_details: None,
            stderr: None,
            thread_id: None,
            turn_id: None,
            usage: None,
        })
    }

    /// A failure of the client before the turn.
    pub(crate) fn request(kind: FailureKind, error: &Error) -> Box<Self> {
        Self::new(Phase::Request, kind, error).with_stderr_of(error)
    }

    /// A failure of the client while the turn ran.
    pub(crate) fn connection(error: &Error) -> Box<Self> {
        Self::new(Phase::Response, FailureKind::Connection, error).with_stderr_of(error)
    }

    pub(crate) fn of_turn(error: Option<&TurnError>) -> Box<Self> {
        let Some(error) = error else {
            return Self::new(Phase::Response, FailureKind::TurnFailed, "the turn failed without an error");
        };
        let phase = phase_of(error.codex_error_info.as_ref());
        let mut failure = Self::new(phase, FailureKind::TurnFailed, &error.message);
        failure.error_info.clone_from(&error.codex_error_info);
        failure.additional_details.clone_from(&error.additional_details);
        failure
    }

    /// Adds the name of the prompt.
    pub(crate) fn of_prompt(mut self: Box<Self>, name: &str) -> Box<Self> {
        name.clone_into(&mut self.prompt);
        self
    }

    /// Adds the turn, and what it has used.
    pub(crate) fn in_turn(mut self: Box<Self>, thread_id: &str, turn_id: &str, usage: Option<TokenUsage>) -> Box<Self> {
        self.thread_id = Some(thread_id.to_owned());
        self.turn_id = Some(turn_id.to_owned());
        self.usage = usage;
        self
    }

    /// Adds the stderr of a server that has ended, unless one is known.
    pub(crate) fn add_stderr(&mut self, ended: &Disconnect) {
        if self.stderr.is_none() && !ended.stderr.is_empty() {
            self.stderr = Some(tail(&ended.stderr));
        }
    }

    fn with_stderr_of(mut self: Box<Self>, error: &Error) -> Box<Self> {
        if let Error::Disconnected(ended) = error {
            self.add_stderr(ended);
        }
        self
    }
}

fn tail(text: &str) -> String {
    text[text.ceil_char_boundary(text.len().saturating_sub(STDERR_TAIL))..].to_owned()
}

/// The phase of a failed turn.
fn phase_of(info: Option<&CodexErrorInfo>) -> Phase {
    use CodexErrorInfo as I;
    match info {
        Some(I::UsageLimitExceeded | I::SessionBudgetExceeded) => Phase::Budget,
        Some(
            I::HttpConnectionFailed { .. }
            | I::RateLimitExceeded
            | I::ModelNotFound
            | I::FlexUnavailable
            | I::PolicyCapacityUnavailable
            | I::Unauthorized
            | I::BadRequest
            | I::ResponseTooManyFailedAttempts { .. }
            | I::ResponseStreamConnectionFailed { .. }
            | I::ResponseStreamDisconnected { .. },
        ) => Phase::Request,
        Some(I::SandboxError) => Phase::Tool,
        Some(I::Unknown(kind)) => phase_of_unknown(kind),
        Some(
            I::ContextWindowExceeded
            | I::ThreadRollbackFailed
            | I::InternalServerError
            | I::ServerOverloaded
            | I::ActiveTurnNotSteerable { .. }
            | I::CyberPolicy
            | I::MisalignmentPolicyViolation
            | I::Other,
        )
        | None => Phase::Response,
    }
}

/// The phase of kinds that other releases of servers have.
fn phase_of_unknown(kind: &Value) -> Phase {
    let name = match kind {
        Value::String(name) => Some(name.as_str()),
        Value::Object(members) => members.keys().next().map(String::as_str),
        _ => None,
    };
    match name {
        Some("modelCap" | "sessionBudgetExceeded") => Phase::Budget,
        _ => Phase::Response,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_error_kind_has_the_phase_of_the_table() {
        let status = json!({ "httpStatusCode": 502 });
        let table = [
            (json!("contextWindowExceeded"), Phase::Response),
            (json!("usageLimitExceeded"), Phase::Budget),
            (json!({ "httpConnectionFailed": status }), Phase::Request),
            (json!("unauthorized"), Phase::Request),
            (json!("badRequest"), Phase::Request),
            (json!("sandboxError"), Phase::Tool),
            (json!({ "responseTooManyFailedAttempts": status }), Phase::Request),
            (json!({ "responseStreamConnectionFailed": status }), Phase::Request),
            (json!({ "responseStreamDisconnected": status }), Phase::Request),
            (json!("threadRollbackFailed"), Phase::Response),
            (json!("internalServerError"), Phase::Response),
            (json!({ "modelCap": { "model": "m", "reset_after_seconds": 60 } }), Phase::Budget),
            (json!("other"), Phase::Response),
            (json!("somethingNew"), Phase::Response),
        ];
        for (info, phase) in table {
            let info: CodexErrorInfo = serde_json::from_value(info).unwrap();
            let error =
                TurnError { message: "no".into(), codex_error_info: Some(info.clone()), additional_details: None };
            let failure = Failure::of_turn(Some(&error));
            assert_eq!((failure.phase, failure.error_info.as_ref()), (phase, Some(&info)), "{info:?}");
        }
    }

    #[test]
    fn only_the_end_of_stderr_is_kept() {
        let long = format!("{}é", "x".repeat(STDERR_TAIL));
        let kept = tail(&long);
        assert!(kept.len() <= STDERR_TAIL && kept.ends_with("xé"), "{}", kept.len());
    }
}

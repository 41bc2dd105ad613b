//! The lines of a ledger.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Money;

/// One line of a ledger. Lines of other types, which newer programs may write, are skipped by readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Entry {
    Call(ModelCall),
    Turn(TurnWork),
    Approval(EndedApproval),
}

/// A model call that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    pub thread_id: String,
    /// The thread at the root of its tree of agents, unless that is itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_thread_id: Option<String>,
    pub turn_id: String,
    /// The name of the client that opened the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub purpose: Purpose,
    pub provider: String,
    pub model: String,
    #[serde(default)]
    pub outcome: Outcome,
    /// Zeros when the provider reported no usage, as of most calls that fail.
    pub tokens: Tokens,
    /// `None` if the model has no configured price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
    pub duration_ms: u64,
}

/// Work of a turn since its last entry of this kind, or since its start. Every turn has one at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnWork {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    pub thread_id: String,
    /// The thread at the root of its tree of agents, unless that is itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_thread_id: Option<String>,
    pub turn_id: String,
    pub tool_calls: u64,
    pub duration_ms: u64,
    /// Since the start of the turn.
    pub elapsed_ms: u64,
}

/// An approval that was decided or closed. It spends nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedApproval {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    pub thread_id: String,
    pub turn_id: String,
    pub approval_id: String,
    /// The method of the server request.
    pub method: String,
    pub asked_at_ms: i64,
    /// `decided`, `expired` or `cancelled`.
    pub state: String,
    /// The decision in a word, without its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The connection that decided, or what decided in place of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    #[default]
    Completed,
    Failed,
    /// The turn was interrupted before the last event.
    Cancelled,
    #[serde(other)]
    Other,
}

impl Entry {
    /// In milliseconds since 1970.
    pub fn at_ms(&self) -> i64 {
        match self {
            Self::Call(call) => call.at_ms,
            Self::Turn(turn) => turn.at_ms,
            Self::Approval(approval) => approval.at_ms,
        }
    }

    /// Whether it belongs to a thread or to one of its child agents.
    pub fn is_of(&self, thread_id: &str) -> bool {
        let (own, root) = match self {
            Self::Call(call) => (&call.thread_id, &call.root_thread_id),
            Self::Turn(turn) => (&turn.thread_id, &turn.root_thread_id),
            Self::Approval(approval) => (&approval.thread_id, &None),
        };
        own == thread_id || root.as_deref() == Some(thread_id)
    }
}

/// Why a model was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    #[default]
    Turn,
    /// A review turn.
    Review,
    Compaction,
    /// The decision of an automatic reviewer about an approval.
    Approval,
    /// A call beside a turn that leaves no trace in the thread.
    Sample,
    /// A response of a realtime session.
    Realtime,
    #[serde(other)]
    Other,
}

/// Tokens by kind. Cached tokens and those written to a cache are part of the input, those of reasoning part of the
/// output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tokens {
    pub input: u64,
    pub cached_input: u64,
    pub cache_write_input: u64,
    pub output: u64,
    pub reasoning_output: u64,
}

impl Tokens {
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.cached_input, other.cached_input),
            (&mut self.cache_write_input, other.cache_write_input),
            (&mut self.output, other.output),
            (&mut self.reasoning_output, other.reasoning_output),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

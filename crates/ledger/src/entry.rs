//! The lines of a ledger.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Money;

/// One line of a ledger. Lines of other types, which newer programs may write, are skipped by readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Entry {
    Call(ModelCall),
    Turn(TurnEnd),
}

/// A model call that reported its usage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    pub thread_id: String,
    pub turn_id: String,
    /// The name of the client that started the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub purpose: Purpose,
    pub provider: String,
    pub model: String,
    pub tokens: Tokens,
    /// `None` if the model has no configured price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
    pub duration_ms: u64,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    pub thread_id: String,
    pub turn_id: String,
    pub tool_calls: u64,
    pub duration_ms: u64,
}

/// Why a model was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    #[default]
    Turn,
    Compaction,
    /// The decision of an automatic reviewer about an approval.
    Approval,
    /// A call beside a turn that leaves no trace in the thread.
    Sample,
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

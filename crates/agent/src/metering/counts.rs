//! Counts since the start of the process, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use loomd_ledger::{ModelCall, Money, Outcome, Purpose, Tokens};

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedOutcome {
    Completed,
    Failed,
    Cancelled,
}

impl CountedOutcome {
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<Outcome> for CountedOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed | Outcome::Other => Self::Failed,
        }
    }
}

const PURPOSES: [(Purpose, &str); 7] = [
    (Purpose::Turn, "turn"),
    (Purpose::Review, "review"),
    (Purpose::Compaction, "compaction"),
    (Purpose::Approval, "approval"),
    (Purpose::Sample, "sample"),
    (Purpose::Realtime, "realtime"),
    (Purpose::Other, "other"),
];

/// The name of a purpose, as metrics have it.
pub(crate) fn purpose_name(purpose: Purpose) -> &'static str {
    PURPOSES.iter().find(|(known, _)| *known == purpose).map_or("other", |(_, name)| name)
}

/// Counts since the start of the process.
#[derive(Default)]
pub struct Counts {
    calls: [[AtomicU64; 3]; PURPOSES.len()],
    call_millis: AtomicU64,
    /// Input, cached, written to a cache, output, reasoning.
    tokens: [AtomicU64; 5],
    money: AtomicU64,
    tool_calls: [AtomicU64; 3],
    turns: [AtomicU64; 3],
    budget_stops: AtomicU64,
}

/// The number of model calls of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallCount {
    pub purpose: &'static str,
    pub outcome: CountedOutcome,
    pub count: u64,
}

/// The counts at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub calls: Vec<CallCount>,
    /// The time that all model calls took.
    pub call_time: Duration,
    pub tokens: Tokens,
    pub money: Money,
    pub tool_calls: [(CountedOutcome, u64); 3],
    pub turns: [(CountedOutcome, u64); 3],
    /// Turns that a budget ended.
    pub budget_stops: u64,
}

impl Counts {
    pub(super) fn call(&self, call: &ModelCall) {
        let purpose = PURPOSES.iter().position(|(purpose, _)| *purpose == call.purpose).unwrap_or(PURPOSES.len() - 1);
        self.calls[purpose][CountedOutcome::from(call.outcome) as usize].fetch_add(1, Relaxed);
        self.call_millis.fetch_add(call.duration_ms, Relaxed);
        let Tokens { input, cached_input, cache_write_input, output, reasoning_output } = call.tokens;
        for (sum, more) in self.tokens.iter().zip([input, cached_input, cache_write_input, output, reasoning_output]) {
            sum.fetch_add(more, Relaxed);
        }
        self.money.fetch_add(call.price.unwrap_or_default().0, Relaxed);
    }

    pub(crate) fn tool_call(&self, outcome: CountedOutcome) {
        self.tool_calls[outcome as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn turn(&self, outcome: CountedOutcome) {
        self.turns[outcome as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn budget_stop(&self) {
        self.budget_stops.fetch_add(1, Relaxed);
    }

    pub fn snapshot(&self) -> Snapshot {
        let load = |count: &AtomicU64| count.load(Relaxed);
        let by_outcome = |counts: &[AtomicU64; 3]| CountedOutcome::ALL.map(|at| (at, load(&counts[at as usize])));
        let calls = PURPOSES.iter().zip(&self.calls).flat_map(|((_, purpose), counts)| {
            by_outcome(counts).map(|(outcome, count)| CallCount { purpose, outcome, count })
        });
        let [input, cached_input, cache_write_input, output, reasoning_output] = self.tokens.each_ref().map(load);
        Snapshot {
            calls: calls.collect(),
            call_time: Duration::from_millis(load(&self.call_millis)),
            tokens: Tokens { input, cached_input, cache_write_input, output, reasoning_output },
            money: Money(load(&self.money)),
            tool_calls: by_outcome(&self.tool_calls),
            turns: by_outcome(&self.turns),
            budget_stops: load(&self.budget_stops),
        }
    }
}

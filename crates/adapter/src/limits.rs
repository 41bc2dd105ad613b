//! [`Limits`] of an evaluation: a deadline, and a [`Budget`] of tokens that several evaluations can share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use loomd_client::protocol::TokenUsageBreakdown;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// What an evaluation may take.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// When the turn is interrupted. The earlier of this and [`Budget::deadline`] counts.
    pub deadline: Option<Instant>,
    pub budget: Option<BudgetTracker>,
}

impl Limits {
    pub fn none() -> Self {
        Self::default()
    }

    /// Ends after this time from now.
    pub fn within(time: Duration) -> Self {
        Self { deadline: Some(Instant::now() + time), budget: None }
    }

    /// Sets a budget for this evaluation only.
    pub fn budget(self, budget: Budget) -> Self {
        self.shared_budget(&BudgetTracker::new(budget))
    }

    /// Sets a budget that other evaluations use, too.
    pub fn shared_budget(mut self, tracker: &BudgetTracker) -> Self {
        self.budget = Some(tracker.clone());
        self
    }

    pub(crate) fn earliest(&self) -> Option<Instant> {
        let of_budget = self.budget.as_ref().and_then(|tracker| tracker.budget().deadline);
        [self.deadline, of_budget].into_iter().flatten().min()
    }
}

/// Numbers of tokens, and a time. What is `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub deadline: Option<Instant>,
    pub total_tokens: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
}

/// Tokens that were used: of a turn, a thread or several evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    pub input_tokens: u64,
    /// The part of the input that the provider had cached.
    pub cached_input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the output that is reasoning.
    pub reasoning_output_tokens: u64,
    pub total_tokens: u64,
}

impl TokenUsage {
    pub(crate) fn of(counts: &TokenUsageBreakdown) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        Self {
            input_tokens: count(counts.input_tokens),
            cached_input_tokens: count(counts.cached_input_tokens),
            output_tokens: count(counts.output_tokens),
            reasoning_output_tokens: count(counts.reasoning_output_tokens),
            total_tokens: count(counts.total_tokens),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    fn zip(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: join(self.input_tokens, other.input_tokens),
            cached_input_tokens: join(self.cached_input_tokens, other.cached_input_tokens),
            output_tokens: join(self.output_tokens, other.output_tokens),
            reasoning_output_tokens: join(self.reasoning_output_tokens, other.reasoning_output_tokens),
            total_tokens: join(self.total_tokens, other.total_tokens),
        }
    }
}

/// Counts tokens against a [`Budget`]. Clones share the count.
#[derive(Clone)]
pub struct BudgetTracker(Arc<Tracked>);

struct Tracked {
    budget: Budget,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    next_share: u64,
    ended: TokenUsage,
    /// Usage of the evaluations in progress.
    running: BTreeMap<u64, TokenUsage>,
}

impl BudgetTracker {
    pub fn new(budget: Budget) -> Self {
        Self(Arc::new(Tracked { budget, counts: Mutex::default() }))
    }

    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// What all evaluations have used so far.
    pub fn used(&self) -> TokenUsage {
        let counts = self.0.counts.lock();
        counts.running.values().fold(counts.ended, |sum, usage| sum.plus(*usage))
    }

    /// The first limit that is exceeded.
    pub fn exceeded(&self) -> Option<Exceeded> {
        let (budget, used) = (self.budget(), self.used());
        [
            ("total tokens", budget.total_tokens, used.total_tokens),
            ("input tokens", budget.input_tokens, used.input_tokens),
            ("output tokens", budget.output_tokens, used.output_tokens),
        ]
        .into_iter()
        .find_map(|(what, limit, used)| {
            let limit = limit.filter(|limit| used > *limit)?;
            Some(Exceeded { what, limit, used })
        })
    }

    /// The share of one evaluation.
    pub(crate) fn share(&self) -> Share {
        let mut counts = self.0.counts.lock();
        let id = counts.next_share;
        counts.next_share += 1;
        Share { tracker: self.clone(), id }
    }
}

impl fmt::Debug for BudgetTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetTracker").field("budget", self.budget()).field("used", &self.used()).finish()
    }
}

/// A limit of a budget that is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    pub what: &'static str,
    pub limit: u64,
    pub used: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the budget is exceeded: {} {} of {}", self.used, self.what, self.limit)
    }
}

/// One evaluation's part of a count. What it used stays counted after its end.
pub(crate) struct Share {
    tracker: BudgetTracker,
    id: u64,
}

impl Share {
    pub(crate) fn set(&self, usage: TokenUsage) {
        self.tracker.0.counts.lock().running.insert(self.id, usage);
    }

    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.tracker.exceeded()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.tracker.0.counts.lock();
        if let Some(usage) = counts.running.remove(&self.id) {
            counts.ended = counts.ended.plus(usage);
        }
    }
}

/// The usage of one turn, from the counts of its thread. A turn has several model calls, and some servers begin it by
/// sending the counts before the turn again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnUsage {
    /// What the thread had used when its last turn ended, if that is known.
    stored: Option<TokenUsage>,
    /// What it had used before this turn, from the first update on.
    before: Option<TokenUsage>,
    pub(crate) turn: TokenUsage,
    pub(crate) thread: TokenUsage,
}

impl TurnUsage {
    pub(crate) fn new(stored: Option<TokenUsage>) -> Self {
        Self { stored, ..Self::default() }
    }

    pub(crate) fn update(&mut self, last: &TokenUsageBreakdown, total: &TokenUsageBreakdown) {
        let total = TokenUsage::of(total);
        let repeated = self.stored.filter(|stored| *stored == total);
        let before = *self.before.get_or_insert_with(|| repeated.unwrap_or(total.minus(TokenUsage::of(last))));
        self.turn = total.minus(before);
        self.thread = total;
    }

    /// `None` if there was no update.
    pub(crate) fn known(&self) -> Option<Self> {
        self.before.map(|_| *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(input: i64, output: i64) -> TokenUsageBreakdown {
        TokenUsageBreakdown {
            total_tokens: input + output,
            input_tokens: input,
            cached_input_tokens: 0,
            cache_write_input_tokens: 0,
            output_tokens: output,
            reasoning_output_tokens: 0,
        }
    }

    #[test]
    fn the_usage_of_a_turn_counts_all_its_calls_once_and_none_of_earlier_turns() {
        let mut usage = TurnUsage::default();
        assert!(usage.known().is_none());
        usage.update(&counts(10, 1), &counts(110, 11));
        usage.update(&counts(20, 2), &counts(130, 13));
        // Sent again, as after a reconnect.
        usage.update(&counts(20, 2), &counts(130, 13));
        let TokenUsage { input_tokens, output_tokens, total_tokens, .. } = usage.turn;
        assert_eq!((input_tokens, output_tokens, total_tokens), (30, 3, 33));
        assert_eq!(usage.thread.total_tokens, 143);
    }

    #[test]
    fn counts_that_a_server_sends_again_at_the_start_of_a_turn_are_not_the_turns() {
        let stored = TokenUsage::of(&counts(110, 11));
        let mut usage = TurnUsage::new(Some(stored));
        usage.update(&counts(10, 1), &counts(110, 11));
        assert_eq!(usage.turn, TokenUsage::default());
        usage.update(&counts(20, 2), &counts(130, 13));
        assert_eq!(usage.turn.total_tokens, 22);
        // Others may have used the thread meanwhile, and not every server sends counts again.
        let mut usage = TurnUsage::new(Some(stored));
        usage.update(&counts(20, 2), &counts(330, 33));
        assert_eq!(usage.turn.total_tokens, 22);
    }

    #[test]
    fn a_shared_budget_counts_ended_and_running_evaluations() {
        let tracker = BudgetTracker::new(Budget { total_tokens: Some(100), ..Budget::default() });
        let (first, second) = (tracker.share(), tracker.share());
        first.set(TokenUsage { total_tokens: 60, ..TokenUsage::default() });
        second.set(TokenUsage { total_tokens: 40, ..TokenUsage::default() });
        assert_eq!(tracker.exceeded(), None);
        drop(first);
        second.set(TokenUsage { total_tokens: 41, ..TokenUsage::default() });
        let exceeded = second.exceeded().unwrap();
        assert_eq!(exceeded.to_string(), "the budget is exceeded: 101 total tokens of 100");
    }

    #[test]
    fn the_earlier_deadline_counts() {
        let soon = Instant::now() + Duration::from_secs(1);
        let later = soon + Duration::from_secs(1);
        let budget = |deadline| Budget { deadline: Some(deadline), ..Budget::default() };
        let limits = |deadline, of_budget| Limits { deadline: Some(deadline), budget: None }.budget(budget(of_budget));
        assert_eq!(limits(soon, later).earliest(), Some(soon));
        assert_eq!(limits(later, soon).earliest(), Some(soon));
        assert_eq!(Limits::none().budget(budget(soon)).earliest(), Some(soon));
        assert_eq!(Limits::none().earliest(), None);
    }
}

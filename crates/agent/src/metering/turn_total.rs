//! What one turn and the turns of child agents that it started have spent, and the turn's budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loomd_ledger::{Budget, Limit, Spent};
use parking_lot::Mutex;

/// How many turns of parent agents a turn counts for. Agents that start turns of each other in a circle would make the
/// list longer and longer; the oldest turns, which have spent the most, are kept.
const MAX_PARENTS: usize = 16;

/// What a turn and the turns that it started have spent. Its time is that of the clock since its start, also when the
/// turn has ended and those that it started have not.
pub(crate) struct TurnTotal {
    begun: Instant,
    budget: Budget,
    spent: Mutex<Spent>,
}

impl TurnTotal {
    pub fn new(budget: Budget) -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), budget, spent: Mutex::default() })
    }

    /// The totals that a turn counts for which is started by the turn of `own`, which in turn counts for `parents`: those
    /// with a budget.
    pub fn inherited(parents: &[Arc<Self>], own: &Arc<Self>) -> Vec<Arc<Self>> {
        let limited = |total: &&Arc<Self>| !total.budget.is_unlimited();
        parents.iter().chain(std::iter::once(own)).filter(limited).take(MAX_PARENTS).cloned().collect()
    }

    pub fn add(&self, more: Spent) {
        *self.spent.lock() += more;
    }

    pub fn spent(&self) -> Spent {
        Spent { time: self.begun.elapsed(), ..*self.spent.lock() }
    }

    /// The limit of the budget that is used up.
    pub fn exceeded(&self) -> Option<Limit> {
        self.budget.exceeded(&self.spent())
    }

    /// Counts a tool call. Fails when the budget allows no more of them.
    pub fn begin_tool_call(&self) -> Result<(), Limit> {
        let mut spent = self.spent.lock();
        match self.budget.tool_calls {
            Some(limit) if spent.tool_calls >= limit => Err(Limit::ToolCalls { spent: spent.tool_calls, limit }),
            _ => {
                spent.tool_calls += 1;
                Ok(())
            }
        }
    }

    /// Takes back [`Self::begin_tool_call`].
    pub fn undo_tool_call(&self) {
        self.spent.lock().tool_calls -= 1;
    }

    /// The limit of time and what is left of it; `None` without one.
    pub fn time_left(&self) -> Option<(Duration, Duration)> {
        self.budget.time.map(|limit| (limit, limit.saturating_sub(self.begun.elapsed())))
    }
}

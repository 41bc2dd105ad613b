//! What may be spent, and how much of it was.

use std::fmt;
use std::time::Duration;

use crate::{Entry, Money};

/// What may be spent by a turn, by a thread, or in a day. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub money: Option<Money>,
    pub model_calls: Option<u64>,
    pub tool_calls: Option<u64>,
    pub time: Option<Duration>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub tokens: u64,
    pub money: Money,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub time: Duration,
}

/// How close the spending is to a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    Within,
    /// At least four fifths of a limit are spent.
    Near(Limit),
    /// All of a limit is spent.
    Exceeded(Limit),
}

/// A limit of a budget, with what was spent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Tokens { spent: u64, limit: u64 },
    Money { spent: Money, limit: Money },
    ModelCalls { spent: u64, limit: u64 },
    ToolCalls { spent: u64, limit: u64 },
    Time { spent: Duration, limit: Duration },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens { spent, limit } => write!(f, "{spent} of {limit} tokens"),
            Self::Money { spent, limit } => write!(f, "{spent} of {limit}"),
            Self::ModelCalls { spent, limit } => write!(f, "{spent} of {limit} model calls"),
            Self::ToolCalls { spent, limit } => write!(f, "{spent} of {limit} tool calls"),
            Self::Time { spent, limit } => write!(f, "{} of {} seconds", spent.as_secs(), limit.as_secs()),
        }
    }
}

impl Spent {
    pub fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Call(call) => {
                self.tokens = self.tokens.saturating_add(call.tokens.total());
                self.money += call.price.unwrap_or_default();
                self.model_calls += 1;
            }
            Entry::Turn(turn) => {
                self.tool_calls = self.tool_calls.saturating_add(turn.tool_calls);
                self.time = self.time.saturating_add(Duration::from_millis(turn.duration_ms));
            }
        }
    }
}

impl Budget {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// How close `spent` is: the first limit that is exceeded, else the first that is near.
    pub fn check(&self, spent: &Spent) -> Margin {
        let limits = [
            self.tokens.map(|limit| (share(spent.tokens, limit), Limit::Tokens { spent: spent.tokens, limit })),
            self.money.map(|limit| (share(spent.money.0, limit.0), Limit::Money { spent: spent.money, limit })),
            self.model_calls
                .map(|limit| (share(spent.model_calls, limit), Limit::ModelCalls { spent: spent.model_calls, limit })),
            self.tool_calls
                .map(|limit| (share(spent.tool_calls, limit), Limit::ToolCalls { spent: spent.tool_calls, limit })),
            self.time.map(|limit| {
                let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                (share(millis(spent.time), millis(limit)), Limit::Time { spent: spent.time, limit })
            }),
        ];
        let mut near = Margin::Within;
        for (share, limit) in limits.into_iter().flatten() {
            match share {
                Share::All => return Margin::Exceeded(limit),
                Share::Most if near == Margin::Within => near = Margin::Near(limit),
                _ => {}
            }
        }
        near
    }
}

/// The part of a limit that is spent.
enum Share {
    Little,
    Most,
    All,
}

fn share(spent: u64, limit: u64) -> Share {
    match () {
        () if spent >= limit => Share::All,
        () if u128::from(spent) * 5 >= u128::from(limit) * 4 => Share::Most,
        () => Share::Little,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_are_near_and_all_is_exceeded() {
        let budget = Budget { tokens: Some(100), ..Budget::default() };
        let check = |tokens| budget.check(&Spent { tokens, ..Spent::default() });
        assert_eq!(check(79), Margin::Within);
        assert_eq!(check(80), Margin::Near(Limit::Tokens { spent: 80, limit: 100 }));
        assert_eq!(check(99), Margin::Near(Limit::Tokens { spent: 99, limit: 100 }));
        assert_eq!(check(100), Margin::Exceeded(Limit::Tokens { spent: 100, limit: 100 }));
        assert_eq!(check(u64::MAX), Margin::Exceeded(Limit::Tokens { spent: u64::MAX, limit: 100 }));
    }

    #[test]
    fn an_exceeded_limit_comes_before_a_near_one() {
        let budget =
            Budget { tokens: Some(100), tool_calls: Some(3), time: Some(Duration::from_secs(60)), ..Budget::default() };
        let spent = Spent { tokens: 90, tool_calls: 3, time: Duration::from_secs(50), ..Spent::default() };
        assert_eq!(budget.check(&spent), Margin::Exceeded(Limit::ToolCalls { spent: 3, limit: 3 }));
        assert_eq!(
            budget.check(&Spent { tool_calls: 0, ..spent }),
            Margin::Near(Limit::Tokens { spent: 90, limit: 100 })
        );
    }

    #[test]
    fn nothing_is_exceeded_without_limits() {
        let spent = Spent { tokens: u64::MAX, model_calls: u64::MAX, ..Spent::default() };
        assert_eq!(Budget::default().check(&spent), Margin::Within);
        // A budget of nothing allows nothing.
        let none = Budget { model_calls: Some(0), ..Budget::default() };
        assert_eq!(none.check(&Spent::default()), Margin::Exceeded(Limit::ModelCalls { spent: 0, limit: 0 }));
    }
}

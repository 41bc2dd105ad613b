//! What may be spent, and how much of it was.

use std::fmt;
use std::ops::AddAssign;
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

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.money += other.money;
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.time = self.time.saturating_add(other.time);
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
            Entry::Approval(_) => {}
        }
    }
}

impl Limit {
    /// A number from 0 to 4 that tells the kinds of limits apart.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Tokens { .. } => 0,
            Self::Money { .. } => 1,
            Self::ModelCalls { .. } => 2,
            Self::ToolCalls { .. } => 3,
            Self::Time { .. } => 4,
        }
    }
}

impl Budget {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The lower limit of both, for each kind.
    pub fn and(&self, other: &Self) -> Self {
        fn lower<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        Self {
            tokens: lower(self.tokens, other.tokens),
            money: lower(self.money, other.money),
            model_calls: lower(self.model_calls, other.model_calls),
            tool_calls: lower(self.tool_calls, other.tool_calls),
            time: lower(self.time, other.time),
        }
    }

    /// The first limit of which all is spent.
    pub fn exceeded(&self, spent: &Spent) -> Option<Limit> {
        self.shares(spent).find(|(share, _)| *share == Share::All).map(|(_, limit)| limit)
    }

    /// The limits of which at least four fifths are spent, and not all.
    pub fn near(&self, spent: &Spent) -> impl Iterator<Item = Limit> {
        self.shares(spent).filter(|(share, _)| *share == Share::Most).map(|(_, limit)| limit)
    }

    fn shares(&self, spent: &Spent) -> impl Iterator<Item = (Share, Limit)> {
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
        limits.into_iter().flatten()
    }
}

/// The part of a limit that is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let check = |tokens| {
            let spent = Spent { tokens, ..Spent::default() };
            (budget.near(&spent).next(), budget.exceeded(&spent))
        };
        let at = |spent| Some(Limit::Tokens { spent, limit: 100 });
        assert_eq!(check(79), (None, None));
        assert_eq!(check(80), (at(80), None));
        assert_eq!(check(99), (at(99), None));
        assert_eq!(check(100), (None, at(100)));
        assert_eq!(check(u64::MAX), (None, at(u64::MAX)));
    }

    #[test]
    fn all_near_limits_are_reported_and_the_first_exceeded_one() {
        let budget =
            Budget { tokens: Some(100), tool_calls: Some(3), time: Some(Duration::from_secs(60)), ..Budget::default() };
        let spent = Spent { tokens: 90, tool_calls: 3, time: Duration::from_secs(50), ..Spent::default() };
        assert_eq!(budget.exceeded(&spent), Some(Limit::ToolCalls { spent: 3, limit: 3 }));
        let near: Vec<_> = budget.near(&spent).map(|limit| limit.to_string()).collect();
        assert_eq!(near, ["90 of 100 tokens", "50 of 60 seconds"]);
    }

    #[test]
    fn nothing_is_exceeded_without_limits() {
        let spent = Spent { tokens: u64::MAX, model_calls: u64::MAX, ..Spent::default() };
        assert_eq!(Budget::default().exceeded(&spent), None);
        // A budget of nothing allows nothing.
        let none = Budget { model_calls: Some(0), ..Budget::default() };
        assert_eq!(none.exceeded(&Spent::default()), Some(Limit::ModelCalls { spent: 0, limit: 0 }));
    }

    #[test]
    fn the_lower_limit_of_two_budgets_applies() {
        let a = Budget { tokens: Some(5), model_calls: Some(7), ..Budget::default() };
        let b = Budget { tokens: Some(9), money: Some(Money(1)), ..Budget::default() };
        let both = Budget { tokens: Some(5), money: Some(Money(1)), model_calls: Some(7), ..Budget::default() };
        assert_eq!((a.and(&b), b.and(&a)), (both, both));
    }
}

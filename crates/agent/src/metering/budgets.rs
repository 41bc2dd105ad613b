//! The budgets that hold for a turn.

use std::fmt;
use std::time::Duration;

use loomd_config::config_toml::{BudgetLimits, Loomd};
use loomd_ledger::{Budget, Limit, Money};
use loomd_protocol::{Budget as RequestedBudget, CodexErrorInfo, TurnError};

/// The budgets that hold for a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Budgets {
    pub turn: Budget,
    pub thread: Budget,
    pub day: Budget,
}

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Turn,
    /// The turn of a parent agent that started this one.
    ParentTurn,
    Thread,
    Day,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "this turn has",
            Self::ParentTurn => "the turn that started this agent has",
            Self::Thread => "this thread has",
            Self::Day => "all threads have today",
        })
    }
}

impl Budgets {
    /// The configured budgets, and those of the requests that started the thread and the turn, where they are lower.
    pub fn new(config: Option<&Loomd>, turn: Option<&RequestedBudget>, thread: Option<&RequestedBudget>) -> Self {
        let configured = config.and_then(|own| own.budgets.as_ref());
        let limits = |limits: Option<&BudgetLimits>| limits.map(of_config).unwrap_or_default();
        Self {
            turn: limits(configured.and_then(|budgets| budgets.turn.as_ref()))
                .and(&turn.map(of_request).unwrap_or_default()),
            thread: limits(configured.and_then(|budgets| budgets.thread.as_ref()))
                .and(&thread.map(of_request).unwrap_or_default()),
            day: limits(configured.and_then(|budgets| budgets.day.as_ref())),
        }
    }

    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

fn of_config(limits: &BudgetLimits) -> Budget {
    let BudgetLimits { tokens, dollars, model_calls, tool_calls, seconds } = *limits;
    Budget {
        tokens,
        money: dollars.map(Money::from_dollars),
        model_calls,
        tool_calls,
        time: seconds.map(Duration::from_secs),
    }
}

fn of_request(budget: &RequestedBudget) -> Budget {
    let RequestedBudget { tokens, dollars, model_calls, tool_calls, seconds } = *budget;
    of_config(&BudgetLimits { tokens, dollars, model_calls, tool_calls, seconds })
}

/// The error of a turn that has no more to spend.
pub(super) fn exceeded(scope: Scope, limit: &Limit) -> TurnError {
    TurnError {
        message: format!("budget exceeded: {scope} spent {limit}"),
        codex_error_info: Some(CodexErrorInfo::SessionBudgetExceeded),
        additional_details: None,
    }
}

pub(super) fn warning(scope: Scope, limit: &Limit) -> String {
    format!("more than 80% of a budget is spent: {scope} spent {limit}")
}

//! What one turn spends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::Date;
use loomd_config::config_toml::{Loomd, ModelPrice};
use loomd_ledger::{Budget, Entry, Limit, ModelCall, Outcome, Price, Purpose, Spent, Tokens, TurnWork, find_price};
use loomd_model::{CallMeter, CallOutcome, CallReport, TokenUsage};
use loomd_protocol::{Budget as RequestedBudget, TurnError};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::budgets::{exceeded, warning};
use super::turn_total::TurnTotal;
use super::{Budgets, Metering, Scope, ThreadSpending, Warned};

/// The turn that spends, and what limits it.
pub(crate) struct SpendingOf<'a> {
    pub thread_id: String,
    pub turn_id: String,
    /// The thread at the root of the tree of agents.
    pub root_thread_id: String,
    /// A day that is not after the creation of that thread.
    pub since: Date,
    pub client: &'a str,
    pub config: Option<&'a Loomd>,
    /// The budget of the request that started the turn.
    pub budget: Option<&'a RequestedBudget>,
    pub thread: Arc<ThreadSpending>,
    /// The turns of parent agents that this turn counts for, too.
    pub parents: Vec<Arc<TurnTotal>>,
    /// Budgets do not apply, as in a replay.
    pub unlimited: bool,
}

/// What one turn spends. Cheap as long as there are no budgets: nothing is read, and nobody waits.
pub(crate) struct Spending {
    metering: Arc<Metering>,
    thread_id: String,
    turn_id: String,
    root_thread_id: String,
    since: Date,
    client: String,
    prices: BTreeMap<String, ModelPrice>,
    begun: Instant,
    budgets: Budgets,
    thread: Arc<ThreadSpending>,
    /// What the turn has spent, turns of child agents that it started included.
    total: Arc<TurnTotal>,
    /// The turns of parent agents whose budgets limit this one.
    parents: Vec<Arc<TurnTotal>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The tool calls of the turn itself.
    tool_calls: u64,
    /// The tool calls and the time that are in the ledger and in the thread's sum.
    settled: (u64, Duration),
    warned: Warned,
    /// The error with which the turn ends.
    stopped: Option<TurnError>,
}

/// The result of comparing what was spent with the budgets.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Checked {
    /// For clients; each is there once.
    pub warnings: Vec<String>,
    pub exceeded: Option<TurnError>,
}

impl Spending {
    pub fn new(metering: &Arc<Metering>, of: SpendingOf<'_>) -> Arc<Self> {
        let budgets = match of.unlimited {
            true => Budgets::default(),
            false => Budgets::new(of.config, of.budget, of.thread.budget()),
        };
        Arc::new(Self {
            metering: Arc::clone(metering),
            thread_id: of.thread_id,
            turn_id: of.turn_id,
            root_thread_id: of.root_thread_id,
            since: of.since,
            client: of.client.to_owned(),
            prices: of.config.map(|own| own.prices.clone()).unwrap_or_default(),
            begun: Instant::now(),
            total: TurnTotal::new(budgets.turn),
            parents: if of.unlimited { Vec::new() } else { of.parents },
            budgets,
            thread: of.thread,
            state: Mutex::default(),
        })
    }

    /// The totals that the turns of child agents count for when this turn starts them.
    pub fn for_children(&self) -> Vec<Arc<TurnTotal>> {
        TurnTotal::inherited(&self.parents, &self.total)
    }

    /// All totals that this turn counts for.
    fn totals(&self) -> impl Iterator<Item = &Arc<TurnTotal>> {
        std::iter::once(&self.total).chain(&self.parents)
    }

    /// The meter of a model call of this turn.
    pub fn meter(self: &Arc<Self>, purpose: Purpose) -> CallMeter {
        let spending = Arc::clone(self);
        CallMeter::new(move |report| spending.call_ended(purpose, report))
    }

    /// Notes a model call that has ended.
    pub fn call_ended(&self, purpose: Purpose, report: CallReport) {
        let CallReport { provider, model, usage, duration, outcome, http_status: _ } = report;
        let tokens = usage.as_ref().map(tokens).unwrap_or_default();
        let price = find_price(&self.prices, &provider, &model).map(|price| price_of(price).of(&tokens));
        let call = ModelCall {
            at_ms: Timestamp::now().as_millisecond(),
            thread_id: self.thread_id.clone(),
            root_thread_id: self.root(),
            turn_id: self.turn_id.clone(),
            client: Some(self.client.clone()).filter(|client| !client.is_empty()),
            purpose,
            provider,
            model,
            outcome: match outcome {
                CallOutcome::Completed => Outcome::Completed,
                CallOutcome::Failed => Outcome::Failed,
                CallOutcome::Cancelled => Outcome::Cancelled,
            },
            tokens,
            price,
            duration_ms: millis(duration),
        };
        self.metering.counts.call(&call);
        let entry = Entry::Call(call);
        let mut spent = Spent::default();
        spent.add(&entry);
        self.totals().for_each(|total| total.add(spent));
        self.thread.add(spent);
        self.metering.push(entry);
    }

    /// Counts a tool call that is about to run. Fails when a budget allows no more of them.
    pub fn begin_tool_call(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        let of_thread = self.thread.spent().tool_calls + (state.tool_calls - state.settled.0);
        if let Some(limit) = self.budgets.thread.tool_calls.filter(|limit| of_thread >= *limit) {
            return Err(exceeded(Scope::Thread, &Limit::ToolCalls { spent: of_thread, limit }).message);
        }
        let scopes = std::iter::once(Scope::Turn).chain(std::iter::repeat(Scope::ParentTurn));
        for (at, (total, scope)) in self.totals().zip(scopes).enumerate() {
            if let Err(limit) = total.begin_tool_call() {
                self.totals().take(at).for_each(|counted| counted.undo_tool_call());
                return Err(exceeded(scope, &limit).message);
            }
        }
        state.tool_calls += 1;
        Ok(())
    }

    /// Compares what was spent with the budgets.
    pub async fn check(&self) -> Checked {
        if self.budgets.is_unlimited() && self.parents.is_empty() {
            return Checked::default();
        }
        if let Some(error) = self.stopped() {
            return Checked { exceeded: Some(error), ..Checked::default() };
        }
        let mut checked = Checked::default();
        self.compare(Scope::Turn, &self.budgets.turn, &self.total.spent(), &mut checked);
        let of_parents = self.parents.iter().find_map(|parent| parent.exceeded());
        if checked.exceeded.is_none() {
            checked.exceeded = of_parents.map(|limit| exceeded(Scope::ParentTurn, &limit));
        }
        let (thread, day) = (!self.budgets.thread.is_unlimited(), !self.budgets.day.is_unlimited());
        if thread {
            self.thread.load(&self.metering, &self.root_thread_id, self.since).await;
        }
        if thread || day {
            self.settle();
        }
        if thread {
            self.compare(Scope::Thread, &self.budgets.thread, &self.thread.spent(), &mut checked);
        }
        if day {
            let metering = Arc::clone(&self.metering);
            let spent = tokio::task::spawn_blocking(move || metering.spent_today()).await.unwrap_or_default();
            self.compare(Scope::Day, &self.budgets.day, &spent, &mut checked);
        }
        checked
    }

    fn compare(&self, scope: Scope, budget: &Budget, spent: &Spent, checked: &mut Checked) {
        for limit in budget.near(spent) {
            let is_new = match scope {
                Scope::Turn => self.state.lock().warned.note(&limit),
                // A parent's turn warns of its budget itself.
                Scope::ParentTurn => false,
                Scope::Thread => self.thread.warn(&limit),
                Scope::Day => self.metering.warn_today(&limit),
            };
            if is_new {
                checked.warnings.push(warning(scope, &limit));
            }
        }
        if checked.exceeded.is_none() {
            checked.exceeded = budget.exceeded(spent).map(|limit| exceeded(scope, &limit));
        }
    }

    /// Notes that a budget ends the turn.
    pub fn stop(&self, error: TurnError) {
        let mut state = self.state.lock();
        if state.stopped.is_none() {
            state.stopped = Some(error);
            self.metering.counts.budget_stop();
        }
    }

    /// The error with which a budget ended the turn.
    pub fn stopped(&self) -> Option<TurnError> {
        self.state.lock().stopped.clone()
    }

    /// Cancels the turn when its time is used up, whatever it is doing then. Ends with `over`.
    pub fn limit_time(self: &Arc<Self>, cancel: CancellationToken, over: CancellationToken) {
        let of_parents = self.parents.iter().any(|parent| parent.time_left().is_some());
        if self.budgets.turn.time.is_none() && self.budgets.thread.time.is_none() && !of_parents {
            return;
        }
        let spending = Arc::clone(self);
        let wait = async move {
            let Some((scope, limit, left)) = spending.time_left().await else { return };
            tokio::time::sleep(left).await;
            spending.stop(exceeded(scope, &Limit::Time { spent: limit, limit }));
            cancel.cancel();
        };
        tokio::spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                () = wait => {}
            }
        });
    }

    /// The time limit that ends first; `None` when nothing is left, which the turn finds before its first model call.
    async fn time_left(&self) -> Option<(Scope, Duration, Duration)> {
        let turn = self.total.time_left().map(|(limit, left)| (Scope::Turn, limit, left));
        let parents = self.parents.iter().filter_map(|parent| parent.time_left());
        let parents = parents.map(|(limit, left)| (Scope::ParentTurn, limit, left));
        let thread = match self.budgets.thread.time {
            Some(limit) => {
                self.thread.load(&self.metering, &self.root_thread_id, self.since).await;
                let left = limit.saturating_sub(self.thread.spent().time).saturating_sub(self.begun.elapsed());
                Some((Scope::Thread, limit, left))
            }
            None => None,
        };
        let first = turn.into_iter().chain(parents).chain(thread).min_by_key(|(_, _, left)| *left)?;
        (!first.2.is_zero()).then_some(first)
    }

    /// Appends the tool calls and the time since the last entry to the ledger. To be called at the end of the turn.
    pub fn settle(&self) {
        let elapsed = self.begun.elapsed();
        let (tool_calls, time) = {
            let mut state = self.state.lock();
            let (calls, time) = state.settled;
            state.settled = (state.tool_calls, elapsed);
            (state.tool_calls - calls, elapsed.saturating_sub(time))
        };
        self.thread.add(Spent { tool_calls, time, ..Spent::default() });
        self.metering.push(Entry::Turn(TurnWork {
            at_ms: Timestamp::now().as_millisecond(),
            thread_id: self.thread_id.clone(),
            root_thread_id: self.root(),
            turn_id: self.turn_id.clone(),
            tool_calls,
            duration_ms: millis(time),
            elapsed_ms: millis(elapsed),
        }));
    }

    fn root(&self) -> Option<String> {
        (self.root_thread_id != self.thread_id).then(|| self.root_thread_id.clone())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn tokens(usage: &TokenUsage) -> Tokens {
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or_default();
    Tokens {
        input: count(usage.input_tokens),
        cached_input: count(usage.cached_input_tokens),
        cache_write_input: count(usage.cache_write_input_tokens),
        output: count(usage.output_tokens),
        reasoning_output: count(usage.reasoning_output_tokens),
    }
}

fn price_of(price: &ModelPrice) -> Price {
    Price {
        input: price.input.unwrap_or_default(),
        cached_input: price.cached_input,
        cache_write_input: price.cache_write_input,
        output: price.output.unwrap_or_default(),
    }
}

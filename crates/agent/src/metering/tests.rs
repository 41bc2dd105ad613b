use std::collections::BTreeMap;

use loomd_config::config_toml::{BudgetLimits, Budgets as ConfiguredBudgets, Loomd, ModelPrice};
use loomd_ledger::{ModelCall, Money, Purpose, Tokens};
use loomd_model::{CallOutcome, CallReport, TokenUsage};
use loomd_protocol::Budget as RequestedBudget;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;

/// Turns of one thread.
struct World {
    home: TempDir,
    metering: Arc<Metering>,
    thread: Arc<ThreadSpending>,
    config: Loomd,
}

impl World {
    fn new(budgets: ConfiguredBudgets) -> Self {
        let home = tempfile::tempdir().unwrap();
        let price = ModelPrice { input: Some(1.0), output: Some(10.0), ..ModelPrice::default() };
        let config =
            Loomd { budgets: Some(budgets), prices: BTreeMap::from([("p/m".into(), price)]), ..Loomd::default() };
        Self { metering: Arc::new(Metering::new(home.path())), home, thread: Arc::default(), config }
    }

    fn turn(&self, thread_id: &str, budget: Option<&RequestedBudget>) -> Arc<Spending> {
        self.turn_of(thread_id, budget, Vec::new())
    }

    /// A turn of a child agent, started by a turn of its parent.
    fn child_of(&self, parent: &Spending) -> Arc<Spending> {
        self.turn_of("child", None, parent.for_children())
    }

    fn turn_of(
        &self,
        thread_id: &str,
        budget: Option<&RequestedBudget>,
        parents: Vec<Arc<TurnTotal>>,
    ) -> Arc<Spending> {
        Spending::new(
            &self.metering,
            SpendingOf {
                thread_id: thread_id.into(),
                turn_id: "turn".into(),
                root_thread_id: "thread".into(),
                since: Date::MIN,
                client: "tests",
                config: Some(&self.config),
                budget,
                thread: Arc::clone(&self.thread),
                parents,
                unlimited: false,
            },
        )
    }
}

fn report(input: i64, output: i64) -> CallReport {
    CallReport {
        provider: "p".into(),
        model: "m".into(),
        usage: Some(TokenUsage {
            total_tokens: input + output,
            input_tokens: input,
            output_tokens: output,
            cached_input_tokens: 0,
            cache_write_input_tokens: 0,
            reasoning_output_tokens: 0,
        }),
        duration: Duration::from_millis(7),
        outcome: CallOutcome::Completed,
        http_status: None,
    }
}

async fn check(spending: &Spending) -> (Vec<String>, Option<String>) {
    let checked = spending.check().await;
    (checked.warnings, checked.exceeded.map(|error| error.message))
}

fn limits(limits: BudgetLimits) -> ConfiguredBudgets {
    ConfiguredBudgets { turn: Some(limits), ..ConfiguredBudgets::default() }
}

#[tokio::test]
async fn a_turn_is_warned_once_and_then_stopped_with_what_it_spent() {
    let world = World::new(limits(BudgetLimits { tokens: Some(100), ..BudgetLimits::default() }));
    let turn = world.turn("thread", None);
    turn.call_ended(Purpose::Turn, report(70, 9));
    assert_eq!(check(&turn).await, (vec![], None));
    turn.call_ended(Purpose::Approval, report(1, 0));
    let warning = "more than 80% of a budget is spent: this turn has spent 80 of 100 tokens";
    assert_eq!(check(&turn).await, (vec![warning.into()], None));
    turn.call_ended(Purpose::Turn, report(1, 0));
    assert_eq!(check(&turn).await, (vec![], None));
    turn.call_ended(Purpose::Compaction, report(30, 0));
    let error = Some("budget exceeded: this turn has spent 111 of 100 tokens".to_owned());
    assert_eq!(check(&turn).await, (vec![], error.clone()));
    assert_eq!(check(&turn).await, (vec![], error));
    // The next turn has a budget of its own.
    assert_eq!(check(&world.turn("thread", None)).await, (vec![], None));
}

#[tokio::test]
async fn a_request_can_lower_a_configured_budget_and_not_raise_it() {
    let world = World::new(limits(BudgetLimits { tokens: Some(100), ..BudgetLimits::default() }));
    let turn = |tokens| world.turn("thread", Some(&RequestedBudget { tokens: Some(tokens), ..Default::default() }));
    for (asked, limit) in [(50, 50), (1000, 100)] {
        let turn = turn(asked);
        turn.call_ended(Purpose::Turn, report(2000, 0));
        let error = format!("budget exceeded: this turn has spent 2000 of {limit} tokens");
        assert_eq!(check(&turn).await, (vec![], Some(error)));
    }
}

#[tokio::test]
async fn money_counts_where_a_price_is_known() {
    let world = World::new(limits(BudgetLimits { dollars: Some(0.002), ..BudgetLimits::default() }));
    let turn = world.turn("thread", None);
    turn.call_ended(Purpose::Turn, CallReport { model: "unknown".into(), ..report(1_000_000, 0) });
    assert_eq!(check(&turn).await, (vec![], None));
    turn.call_ended(Purpose::Turn, report(1000, 100));
    let error = "budget exceeded: this turn has spent $0.0020 of $0.0020";
    assert_eq!(check(&turn).await, (vec![], Some(error.into())));
}

#[tokio::test]
async fn tool_calls_beyond_the_budget_do_not_run() {
    let budgets = ConfiguredBudgets {
        thread: Some(BudgetLimits { tool_calls: Some(3), ..BudgetLimits::default() }),
        ..ConfiguredBudgets::default()
    };
    let world = World::new(budgets);
    let turn = world.turn("thread", None);
    for _ in 0..2 {
        assert_eq!(turn.begin_tool_call(), Ok(()));
    }
    assert_eq!(check(&turn).await, (vec![], None));
    // A child agent shares the budget.
    let child = world.turn("child", None);
    assert_eq!(child.begin_tool_call(), Ok(()));
    let error = "budget exceeded: this thread has spent 3 of 3 tool calls".to_owned();
    assert_eq!(child.begin_tool_call(), Err(error.clone()));
    child.settle();
    assert_eq!(turn.begin_tool_call(), Err(error.clone()));
    assert_eq!(check(&turn).await, (vec![], Some(error)));
}

#[tokio::test]
async fn what_child_agents_spend_counts_for_the_turn_that_started_them() {
    let world = World::new(ConfiguredBudgets::default());
    let budget = RequestedBudget { tokens: Some(100), ..Default::default() };
    let turn = world.turn("thread", Some(&budget));
    let child = world.child_of(&turn);
    let grandchild = world.child_of(&child);
    grandchild.call_ended(Purpose::Turn, report(60, 0));
    child.call_ended(Purpose::Turn, report(40, 0));
    let of_parent = "budget exceeded: the turn that started this agent has spent 100 of 100 tokens";
    assert_eq!(check(&child).await, (vec![], Some(of_parent.into())));
    assert_eq!(check(&grandchild).await, (vec![], Some(of_parent.into())));
    let error = "budget exceeded: this turn has spent 100 of 100 tokens";
    assert_eq!(check(&turn).await, (vec![], Some(error.into())));
    // A later turn has a budget of its own, and so have the agents that it starts.
    let next = world.turn("thread", Some(&budget));
    assert_eq!(check(&world.child_of(&next)).await, (vec![], None));
    assert_eq!(world.thread.spent().tokens, 100);
}

#[tokio::test]
async fn tool_calls_of_child_agents_count_once_and_are_refused_beyond_the_budget_of_the_parents_turn() {
    let world = World::new(limits(BudgetLimits { tool_calls: Some(3), ..BudgetLimits::default() }));
    let turn = world.turn("thread", None);
    let child = world.child_of(&turn);
    assert_eq!([turn.begin_tool_call(), child.begin_tool_call(), child.begin_tool_call()], [Ok(()), Ok(()), Ok(())]);
    let of_parent = "budget exceeded: the turn that started this agent has spent 3 of 3 tool calls";
    assert_eq!(child.begin_tool_call(), Err(of_parent.into()));
    // The refused call does not count for the child.
    assert_eq!(world.child_of(&child).begin_tool_call(), Err(of_parent.into()));
    assert_eq!(child.for_children().iter().map(|total| total.spent().tool_calls).collect::<Vec<_>>(), [3, 2]);
    turn.settle();
    child.settle();
    assert_eq!(world.thread.spent().tool_calls, 3);
}

#[tokio::test(start_paused = true)]
async fn a_child_agent_is_cancelled_when_the_time_of_the_parents_turn_is_used_up() {
    let world = World::new(ConfiguredBudgets::default());
    let budget = RequestedBudget { seconds: Some(60), ..Default::default() };
    let child = world.child_of(&world.turn("thread", Some(&budget)));
    let (cancel, over) = (CancellationToken::new(), CancellationToken::new());
    child.limit_time(cancel.clone(), over);
    cancel.cancelled().await;
    let error = child.stopped().map(|error| error.message);
    assert_eq!(error.as_deref(), Some("budget exceeded: the turn that started this agent has spent 60 of 60 seconds"));
}

#[tokio::test]
async fn agents_that_start_each_other_in_a_circle_stay_within_the_budget_of_the_first_turn() {
    let world = World::new(limits(BudgetLimits { model_calls: Some(40), ..BudgetLimits::default() }));
    let first = world.turn("thread", None);
    let mut turn = Arc::clone(&first);
    let mut calls = 0;
    while check(&turn).await.1.is_none() {
        turn.call_ended(Purpose::Turn, report(1, 0));
        calls += 1;
        turn = world.child_of(&turn);
        assert!(turn.for_children().len() <= 16);
    }
    assert_eq!(calls, 40);
}

#[tokio::test]
async fn a_thread_that_is_loaded_again_has_spent_what_it_spent_before() {
    let budgets = ConfiguredBudgets {
        thread: Some(BudgetLimits { model_calls: Some(3), ..BudgetLimits::default() }),
        ..ConfiguredBudgets::default()
    };
    let mut world = World::new(budgets);
    world.turn("thread", None).call_ended(Purpose::Turn, report(1, 1));
    world.turn("child", None).call_ended(Purpose::Turn, report(1, 1));
    world.metering = Arc::new(Metering::new(world.home.path()));
    world.thread = Arc::default();
    let turn = world.turn("thread", None);
    assert_eq!(check(&turn).await, (vec![], None));
    turn.call_ended(Purpose::Turn, report(1, 1));
    let error = "budget exceeded: this thread has spent 3 of 3 model calls";
    assert_eq!(check(&turn).await, (vec![], Some(error.into())));
}

#[tokio::test]
async fn the_day_includes_other_threads_and_processes_and_is_warned_about_once() {
    let budgets = ConfiguredBudgets {
        day: Some(BudgetLimits { tokens: Some(10), ..BudgetLimits::default() }),
        ..ConfiguredBudgets::default()
    };
    let world = World::new(budgets);
    let other = Metering::new(world.home.path());
    let spend = |input| {
        other.push(Entry::Call(ModelCall {
            at_ms: Timestamp::now().as_millisecond(),
            tokens: Tokens { input, ..Tokens::default() },
            ..ModelCall::default()
        }));
        assert!(other.flush());
    };
    spend(8);
    let warning = "more than 80% of a budget is spent: all threads have today spent 8 of 10 tokens";
    assert_eq!(check(&world.turn("thread", None)).await, (vec![warning.into()], None));
    assert_eq!(check(&world.turn("thread", None)).await, (vec![], None));
    spend(2);
    let error = "budget exceeded: all threads have today spent 10 of 10 tokens";
    assert_eq!(check(&world.turn("thread", None)).await, (vec![], Some(error.into())));
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_cancelled_when_its_time_is_used_up() {
    let world = World::new(limits(BudgetLimits { seconds: Some(60), ..BudgetLimits::default() }));
    let turn = world.turn("thread", None);
    let (cancel, over) = (CancellationToken::new(), CancellationToken::new());
    turn.limit_time(cancel.clone(), over.clone());
    cancel.cancelled().await;
    let error = turn.stopped().unwrap();
    assert_eq!(error.message, "budget exceeded: this turn has spent 60 of 60 seconds");
    assert_eq!(check(&turn).await.1, Some(error.message));
}

#[tokio::test]
async fn every_entry_of_a_turn_is_in_the_ledger_with_its_thread_client_and_price() {
    let world = World::new(ConfiguredBudgets::default());
    let turn = world.turn("child", None);
    turn.call_ended(Purpose::Review, report(1000, 1));
    turn.begin_tool_call().unwrap();
    turn.settle();
    assert!(world.metering.flush());
    let entries: Vec<_> = world.metering.ledger().entries(Date::MIN..=Date::MAX).collect();
    let [Entry::Call(call), Entry::Turn(work)] = &entries[..] else { panic!("{entries:?}") };
    let expected = ModelCall {
        at_ms: call.at_ms,
        thread_id: "child".into(),
        root_thread_id: Some("thread".into()),
        turn_id: "turn".into(),
        client: Some("tests".into()),
        purpose: Purpose::Review,
        provider: "p".into(),
        model: "m".into(),
        tokens: Tokens { input: 1000, output: 1, ..Tokens::default() },
        price: Some(Money(1_010_000)),
        duration_ms: 7,
        ..ModelCall::default()
    };
    assert_eq!(*call, expected);
    assert_eq!((work.tool_calls, work.root_thread_id.as_deref()), (1, Some("thread")));
    let counts = world.metering.counts.snapshot();
    assert_eq!((counts.tokens.total(), counts.money), (1001, Money(1_010_000)));
    let review = CallCount { purpose: "review", outcome: CountedOutcome::Completed, count: 1 };
    assert_eq!(counts.calls.iter().filter(|count| count.count > 0).collect::<Vec<_>>(), [&review]);
}

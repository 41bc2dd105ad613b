//! Deadlines and budgets end running turns.

use std::time::Duration;

use loomd_adapter::{Budget, FailureKind, Limits, Phase, Session, Text};
use loomd_testkit::Gate;
use loomd_testkit::model::{message, shell};

use super::{Target, on_each_target, prompt, setup};

on_each_target! {
    a_deadline_interrupts_the_turn
    a_budget_interrupts_the_turn
}

async fn a_deadline_interrupts_the_turn(target: Target) {
    let setup = setup(&target).await;
    let gate = Gate::new();
    setup.model.reply(message("too late").after(&gate));
    let limits = Limits::within(Duration::from_secs(4));
    let outcome = setup.adapter.evaluate::<Text>(&prompt("Wait."), &mut Session::new(), limits).await;
    let error = outcome.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Deadline), "{failure:?}");
    // On a busy machine the deadline may pass before the turn.
    if failure.turn_id.is_some() && !setup.model.calls().is_empty() {
        setup.model.abandoned(0).await;
    }
}

async fn a_budget_interrupts_the_turn(target: Target) {
    let setup = setup(&target).await;
    let gate = Gate::new();
    // The first call uses 15 tokens.
    setup.model.reply(shell("echo hi")).reply(message("never").after(&gate));
    let limits = Limits::none().budget(Budget { total_tokens: Some(14), ..Budget::default() });
    let outcome = setup.adapter.evaluate::<Text>(&prompt("Spend."), &mut Session::new(), limits).await;
    let error = outcome.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Budget, FailureKind::Budget), "{failure:?}");
    assert_eq!(failure.message, "the budget is exceeded: 15 total tokens of 14");
}

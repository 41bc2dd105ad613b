//! What turns spend, and the budgets that end them.

use std::fs;

use loomd_ledger::{Entry, ModelCall, Outcome, Purpose, Tokens};
use loomd_testkit::model::{
    Reply, Usage, completed, custom_call, error, function_call, incomplete_after, message, shell,
};
use serde_json::{Value, json};

use crate::world::{World, input};

fn took(input: u64, output: u64) -> Reply {
    completed(usage(input, output))
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, cached: input / 2, output, reasoning: output / 2 }
}

/// The model calls in the ledger.
fn calls(world: &World) -> Vec<ModelCall> {
    assert!(world.metering.flush());
    let all = jiff::civil::Date::MIN..=jiff::civil::Date::MAX;
    let entries = world.metering.ledger().entries(all);
    entries.filter_map(|entry| if let Entry::Call(call) = entry { Some(call) } else { None }).collect()
}

/// The error of the last turn.
fn failure(world: &World) -> (String, Value) {
    let turns = world.received.of("turn/completed");
    let error = &turns.last().expect("a turn")["turn"]["error"];
    (error["message"].as_str().unwrap_or_default().into(), error["codexErrorInfo"].clone())
}

fn warnings(world: &World) -> Vec<Value> {
    world.received.of("warning").into_iter().map(|warning| warning["message"].clone()).collect()
}

#[tokio::test]
async fn the_ledgers_sum_is_what_the_model_reported_reviewer_and_compaction_included() {
    let world = World::with("[features]\napply_patch_freeform = true").await;
    let verdict = json!({ "risk_level": "low", "risk_score": 1, "rationale": "r", "evidence": [] }).to_string();
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch";
    let reported = [(10, 1), (100, 2), (1000, 4), (10_000, 8), (100_000, 16)];
    let [call, review, answer, summary, cut] = reported;
    world
        .model
        .reply(custom_call("apply_patch", patch, "c1").then(took(call.0, call.1)))
        .reply(message(&verdict).then(took(review.0, review.1)))
        .reply(message("done").then(took(answer.0, answer.1)))
        .reply(message("summary").then(took(summary.0, summary.1)))
        .reply(incomplete_after("content_filter", usage(cut.0, cut.1)))
        .reply(error(400, "invalid_request_error", "no"));
    let id = world.start(false).await;
    let go = json!({ "input": input("go"), "approvalPolicy": "on-request", "approvalsReviewer": "guardian_subagent",
        "sandboxPolicy": { "type": "readOnly" } });
    let turn = world.say_with(id, go).await.unwrap();
    assert_eq!(world.ended(&turn).await, "completed");
    let turn = world.compact(id).await;
    assert_eq!(world.ended(&turn).await, "completed");
    world.ask(id, "is cut").await;
    world.ask(id, "is refused").await;
    assert_eq!(world.model.unused(), 0);
    let calls = calls(&world);
    let mut sum = Tokens::default();
    calls.iter().for_each(|call| sum += call.tokens);
    let total = |of: fn((u64, u64)) -> u64| reported.iter().map(|usage| of(*usage)).sum::<u64>();
    let expected = Tokens {
        input: total(|(input, _)| input),
        cached_input: total(|(input, _)| input / 2),
        cache_write_input: 0,
        output: total(|(_, output)| output),
        reasoning_output: total(|(_, output)| output / 2),
    };
    assert_eq!(sum, expected, "{calls:?}");
    let found: Vec<_> = calls.iter().map(|call| (call.purpose, call.outcome)).collect();
    let expected = [
        (Purpose::Turn, Outcome::Completed),
        (Purpose::Approval, Outcome::Completed),
        (Purpose::Turn, Outcome::Completed),
        (Purpose::Compaction, Outcome::Completed),
        (Purpose::Turn, Outcome::Failed),
        (Purpose::Turn, Outcome::Failed),
    ];
    assert_eq!(found, expected);
    for call in &calls {
        let of = (call.thread_id.as_str(), call.provider.as_str(), call.client.as_deref(), call.price);
        assert_eq!(of, (id.to_string().as_str(), "scripted", Some("test"), None));
    }
    let counts = world.metering.counts.snapshot();
    assert_eq!(counts.tokens, sum);
    assert_eq!(counts.turns.map(|(_, count)| count), [2, 2, 0]);
}

#[tokio::test]
async fn a_runaway_loop_of_tool_calls_stops_within_one_step() {
    let world = World::with("[loomd.budgets.turn]\ntool_calls = 3").await;
    let counter = world.home.work().join("counter");
    for _ in 0..20 {
        world.model.reply(shell("echo ran >> counter").then(took(10, 1)));
    }
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "loop").await, "failed");
    assert_eq!(fs::read_to_string(&counter).unwrap().lines().count(), 3);
    assert_eq!(world.model.calls().len(), 3);
    assert_eq!(failure(&world).0, "budget exceeded: this turn has spent 3 of 3 tool calls");
    // Every item that started has completed.
    assert_eq!(world.received.of("item/started").len(), world.received.of("item/completed").len());
    // The next turn has a budget of its own.
    world.model.forget_replies();
    world.model.reply(message_reply("fine"));
    assert_eq!(world.ask(id, "again").await, "completed");
}

#[tokio::test]
async fn a_runaway_tree_of_agents_stops_within_one_step_of_the_budget_of_the_turn_that_started_it() {
    let world = World::new().await;
    world.model.reply(function_call("spawn_agent", json!({ "message": "loop" }), "c1").then(took(10, 1)));
    for _ in 0..40 {
        world.model.reply(shell("true").then(took(10, 1)));
    }
    let id = world.start(false).await;
    let go = json!({ "input": input("go"), "budget": { "modelCalls": 10 } });
    let turn = world.say_with(id, go).await.unwrap();
    assert_eq!(world.ended(&turn).await, "failed");
    let child = world.received.find("turn/completed", |told| told["threadId"] != id.to_string()).await;
    let message = child["turn"]["error"]["message"].as_str().unwrap();
    let expected = "budget exceeded: the turn that started this agent has spent ";
    assert!(message.starts_with(expected) && message.ends_with(" of 10 model calls"), "{message}");
    // Parent and child may each have had one call in progress when the budget was used up.
    let calls = world.model.calls().len();
    assert!((10..=11).contains(&calls), "{calls}");
    assert_eq!(world.received.of("item/started").len(), world.received.of("item/completed").len());
    assert_eq!(world.metering.counts.snapshot().budget_stops, 2);
}

#[tokio::test]
async fn the_calls_of_child_agents_are_in_the_ledger_under_the_thread_that_started_them() {
    let world = World::new().await;
    world
        .model
        .reply(function_call("spawn_agent", json!({ "message": "look" }), "c1").then(took(10, 2)))
        .reply(message("one").then(took(100, 4)))
        .reply(message("two").then(took(1000, 8)));
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "go").await, "completed");
    world.received.find("turn/completed", |told| told["threadId"] != id.to_string()).await;
    let calls = calls(&world);
    let tokens = |of: fn(&Tokens) -> u64| calls.iter().map(|call| of(&call.tokens)).sum::<u64>();
    assert_eq!((tokens(|of| of.input), tokens(|of| of.output), calls.len()), (1110, 14, 3));
    let root = id.to_string();
    let of_child: Vec<_> = calls.iter().filter(|call| call.thread_id != root).collect();
    let [of_child] = &of_child[..] else { panic!("{calls:?}") };
    assert_eq!(of_child.root_thread_id.as_deref(), Some(root.as_str()));
    let ledger = world.metering.ledger();
    assert_eq!(ledger.spent_by_thread(&root, jiff::civil::Date::MIN).tokens, 1124);
}

fn message_reply(text: &str) -> Reply {
    message(text).then(took(1, 1))
}

#[tokio::test]
async fn tool_calls_of_one_answer_beyond_the_budget_do_not_run() {
    let world = World::with("[loomd.budgets.turn]\ntool_calls = 3").await;
    let many = (0..9).fold(shell("echo ran >> counter"), |reply, _| reply.then(shell("echo ran >> counter")));
    world.model.reply(many.then(took(10, 1)));
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "many").await, "failed");
    assert_eq!(fs::read_to_string(world.home.work().join("counter")).unwrap().lines().count(), 3);
    assert_eq!(world.model.calls().len(), 1);
}

#[tokio::test]
async fn a_turn_is_warned_at_four_fifths_and_fails_with_what_it_spent() {
    let world = World::new().await;
    for _ in 0..4 {
        world.model.reply(shell("true").then(took(40, 1)));
    }
    let id = world.start(false).await;
    let turn = world.say_with(id, json!({ "input": input("go"), "budget": { "tokens": 100 } })).await.unwrap();
    assert_eq!(world.ended(&turn).await, "failed");
    assert_eq!(world.model.calls().len(), 3);
    assert_eq!(warnings(&world), ["more than 80% of a budget is spent: this turn has spent 82 of 100 tokens"]);
    let message = "budget exceeded: this turn has spent 123 of 100 tokens";
    assert_eq!(failure(&world), (message.into(), json!("sessionBudgetExceeded")));
}

#[tokio::test]
async fn a_turn_whose_last_answer_uses_up_the_budget_completes() {
    let world = World::with("[loomd.budgets.thread]\nmodel_calls = 1").await;
    world.model.reply(message_reply("done")).reply(message_reply("never"));
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "one").await, "completed");
    assert_eq!(world.ask(id, "two").await, "failed");
    assert_eq!(failure(&world).0, "budget exceeded: this thread has spent 1 of 1 model calls");
    // The input of the turn that failed is in the history.
    assert_eq!(world.stored(id).await[1], ("failed".into(), vec!["userMessage".into()]));
    // A compaction is a model call, too.
    let turn = world.compact(id).await;
    assert_eq!(world.ended(&turn).await, "failed");
    assert_eq!(world.model.unused(), 1);
}

#[tokio::test]
async fn a_command_that_runs_when_the_time_is_used_up_is_stopped() {
    let world = World::with("[loomd.budgets.turn]\nseconds = 1").await;
    world.model.reply(shell("echo $$ > pid; exec sleep 600").then(took(10, 1)));
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "sleep").await, "failed");
    assert_eq!(failure(&world).0, "budget exceeded: this turn has spent 1 of 1 seconds");
    assert_eq!(world.received.of("item/started").len(), world.received.of("item/completed").len());
    let counts = world.metering.counts.snapshot();
    assert_eq!(counts.budget_stops, 1);
}

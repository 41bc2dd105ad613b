//! Queued turns, steering and interrupts.

use loomd_testkit::Gate;
use loomd_testkit::model::{Reply, added, function_call, hang_up, message, shell, status, text_delta};
use serde_json::{Value, json};

use crate::world::{World, answered, input};

/// An answer that is held back in the middle of a message.
fn paused(gate: &Gate) -> Reply {
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "msg_p", "content": [] }));
    begun.then(text_delta("so far")).wait(gate)
}

#[tokio::test]
async fn input_during_a_compaction_starts_the_next_turns() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let gate = Gate::new();
    world.model.reply(message("summary").after(&gate));
    let compaction = world.compact(id).await;
    world.model.call(1).await;
    let next = world.say(id, "second").await.expect("it is queued");
    let after = world.say(id, "third").await.expect("it is queued");
    assert!(next != compaction && next != after);
    gate.open();
    for turn in [&compaction, &next, &after] {
        assert_eq!(world.ended(turn).await, "completed");
    }
    let order: Vec<Value> =
        world.received.of("turn/started").iter().skip(1).map(|told| told["turn"]["id"].clone()).collect();
    assert_eq!(order, [compaction, next, after]);
    assert_eq!(world.last_call().await.iter().rev().take(2).collect::<Vec<_>>(), ["third", "second"]);
}

#[tokio::test]
async fn input_with_an_output_schema_becomes_a_turn_of_its_own() {
    let world = World::new().await;
    let id = world.start(false).await;
    let gate = Gate::new();
    world.model.reply(message("first").after(&gate)).reply(message("{}"));
    let first = world.say(id, "first").await.expect("a turn");
    world.model.call(0).await;
    let schema = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
    let params = json!({ "input": input("second"), "outputSchema": schema });
    let second = world.say_with(id, params).await.expect("it is queued");
    assert_ne!(first, second);
    gate.open();
    assert_eq!((world.ended(&first).await, world.ended(&second).await), ("completed".into(), "completed".into()));
    let formats: Vec<_> =
        world.model.calls().iter().map(|call| call.body["text"]["format"]["schema"].clone()).collect();
    assert_eq!(formats, [Value::Null, schema]);
}

#[tokio::test]
async fn a_queued_turn_can_be_interrupted() {
    let world = World::new().await;
    let id = world.start(false).await;
    let gate = Gate::new();
    world.model.reply(message("summary").after(&gate));
    let compaction = world.compact(id).await;
    let queued = world.say(id, "never mind").await.expect("it is queued");
    world.interrupt(id, &queued).await.expect("it waits");
    assert_eq!(world.ended(&queued).await, "interrupted");
    gate.open();
    assert_eq!(world.ended(&compaction).await, "completed");
    assert_eq!(world.ask(id, "hello").await, "completed");
    let told = world.last_call().await;
    assert!(told.ends_with(&["hello".to_owned()]) && !told.contains(&"never mind".to_owned()), "{told:?}");
}

#[tokio::test]
async fn input_after_an_interrupt_starts_a_new_turn() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(shell("sleep 30"));
    let first = world.say(id, "first").await.expect("a turn");
    world.received.find("item/started", |told| told["item"]["type"] == "commandExecution").await;
    // Both requests are sent before the turn has stopped.
    let (stopped, second) = tokio::join!(world.interrupt(id, &first), world.say(id, "second"));
    stopped.expect("it is running");
    let second = second.expect("a turn");
    assert_ne!(first, second);
    assert_eq!((world.ended(&first).await, world.ended(&second).await), ("interrupted".into(), "completed".into()));
    assert_eq!(world.last_call().await.last().map(String::as_str), Some("second"));
}

#[tokio::test]
async fn a_turn_that_is_being_stopped_cannot_be_steered() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(shell("sleep 30"));
    let turn = world.say(id, "first").await.expect("a turn");
    world.received.find("item/started", |told| told["item"]["type"] == "commandExecution").await;
    let (_, steered) = tokio::join!(world.interrupt(id, &turn), world.steer(id, &turn, "rather this"));
    assert_eq!(steered.expect_err("too late").to_string(), "no active turn to steer");
}

#[tokio::test]
async fn a_call_that_ended_before_the_interrupt_keeps_its_output() {
    let world = World::new().await;
    let id = world.start(false).await;
    let call =
        |id: &str, script: &str| function_call("shell_command", json!({ "command": script, "login": false }), id);
    world.model.reply(call("call_1", "echo quick").then(call("call_2", "sleep 30")));
    let turn = world.say(id, "first").await.expect("a turn");
    world.received.find("item/completed", |told| told["item"]["id"] == "call_1").await;
    world.received.find("item/started", |told| told["item"]["id"] == "call_2").await;
    world.interrupt(id, &turn).await.expect("it is running");
    world.ask(id, "what happened?").await;
    let call = world.model.call(1).await;
    let output = |id: &str| call.tool_output(id).and_then(Value::as_str).expect("an output");
    assert!(output("call_1").ends_with("Output:\nquick\n"), "{}", output("call_1"));
    assert!(output("call_2").ends_with("aborted by user"), "{}", output("call_2"));
}

#[tokio::test]
async fn a_session_that_is_starting_when_its_turn_is_interrupted_goes_on_in_the_background() {
    for round in 0..12 {
        let world = World::new().await;
        let id = world.start(false).await;
        let arguments = json!({ "cmd": "until [ -e go ]; do sleep 0.01; done; echo gone", "login": false });
        world.model.reply(function_call("exec_command", arguments, "call_s"));
        let turn = world.say(id, "start it").await.expect("a turn");
        world.received.find("item/started", |told| told["item"]["id"] == "call_s").await;
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        world.interrupt(id, &turn).await.expect("it is running");
        assert_eq!(world.ended(&turn).await, "interrupted");
        std::fs::write(world.home.work().join("go"), "").expect("a file");
        let end = world.received.find("item/completed", |told| told["item"]["id"] == "call_s").await;
        assert_eq!(end["item"]["status"], "completed", "round {round}: {end}");
        assert_eq!(end["item"]["aggregatedOutput"], "gone\n", "round {round}");
    }
}

#[tokio::test]
async fn a_rate_limit_is_published_when_it_fails_the_turn() {
    let world = World::new().await;
    let id = world.start(false).await;
    let limit = json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro" } });
    let refused = status(429, limit).header("x-codex-primary-used-percent", "100");
    world.model.reply(refused.header("x-codex-primary-window-minutes", "300"));
    let turn = world.say(id, "first").await.expect("a turn");
    assert_eq!(world.ended(&turn).await, "failed");
    let told = world.received.of("account/rateLimits/updated");
    assert_eq!(told.last().map(|told| &told["rateLimits"]["primary"]["usedPercent"]), Some(&json!(100)));
}

#[tokio::test]
async fn turns_that_replace_a_turn_run_in_the_order_of_their_requests() {
    let world = World::new().await;
    let id = world.start(false).await;
    let gate = Gate::new();
    world.model.reply(paused(&gate));
    let turn = world.say(id, "first").await.expect("a turn");
    world.received.find("item/agentMessage/delta", |_| true).await;
    let one = world.compact(id).await;
    let two = world.compact(id).await;
    let three = world.say(id, "second").await.expect("it is queued");
    assert_eq!(world.ended(&three).await, "completed");
    let order: Vec<Value> = world.received.of("turn/completed").iter().map(|told| told["turn"]["id"].clone()).collect();
    assert_eq!(order, [turn, one, two, three]);
}

#[tokio::test]
async fn input_that_races_with_the_end_of_a_turn_is_not_lost() {
    let world = World::new().await;
    let id = world.start(false).await;
    for round in 0..60 {
        let turn = world.say(id, &format!("question {round}")).await.expect("a turn");
        // Somewhere between the call of the model and the end of the turn.
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        let late = format!("late {round}");
        let steered = world.steer(id, &turn, &late).await;
        assert_eq!(world.ended(&turn).await, "completed");
        world.ask(id, "and?").await;
        let received = world.last_call().await.contains(&late);
        assert_eq!(received, steered.is_ok(), "{round}: {steered:?}");
    }
}

#[tokio::test]
async fn unsubscribing_ends_the_turn_before_the_thread_is_unloaded() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(shell("sleep 30"));
    let turn = world.say(id, "first").await.expect("a turn");
    world.received.find("item/started", |told| told["item"]["type"] == "commandExecution").await;
    answered(async |reply| world.threads.unsubscribe(id, crate::world::ME, true, reply).await)
        .await
        .expect("it was joined");
    world.received.find("thread/closed", |_| true).await;
    assert!(!world.threads.is_loaded(id));
    assert_eq!(
        world.stored(id).await,
        [("interrupted".into(), vec!["userMessage".to_owned(), "commandExecution".to_owned()])]
    );
    // The lease is released: another process could write to the thread.
    let opened = answered(async |reply| {
        world.threads.resume(loomd_agent::Source::Id(id), true, world.resolve(), crate::world::ME, reply).await;
    });
    assert_eq!(opened.await.expect("it resumes").thread.turns[0].id, turn);
    assert_eq!(world.ask(id, "again").await, "completed");
}

#[tokio::test]
async fn a_command_of_the_user_ends_before_the_turn_that_it_runs_beside() {
    let cases: [(&str, Reply); 2] = [("completed", message("done")), ("failed", hang_up())];
    for (status, reply) in cases {
        let world = World::new().await;
        let id = world.start(false).await;
        let gate = Gate::new();
        world.model.reply(reply.after(&gate));
        let turn = world.say(id, "first").await.expect("a turn");
        world.model.call(0).await;
        let ran =
            answered(async |reply| world.threads.shell_command(id, "read x < fifo; echo $x".into(), None, reply).await);
        let fifo = world.home.work().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        ran.await.expect("it runs");
        world.received.find("item/started", |told| told["item"]["type"] == "commandExecution").await;
        gate.open();
        // The command ends at about the same time as the rest of the turn.
        tokio::task::spawn_blocking(move || std::fs::write(fifo, "found\n")).await.expect("a task").expect("a pipe");
        assert_eq!(world.ended(&turn).await, status);
        ends_once_and_before(&world, &turn);
        assert_eq!(world.ask(id, "what did I run?").await, "completed");
        let told = world.model.calls().last().expect("a call").user_texts().join("\n");
        assert!(told.contains("<user_shell_command>") && told.contains("found"), "{status}: {told}");
    }
}

#[tokio::test]
async fn a_command_of_the_user_is_stopped_with_the_turn_that_it_runs_beside() {
    let world = World::new().await;
    let id = world.start(false).await;
    let gate = Gate::new();
    world.model.reply(message("never").after(&gate));
    let turn = world.say(id, "first").await.expect("a turn");
    world.model.call(0).await;
    answered(async |reply| world.threads.shell_command(id, "sleep 30".into(), None, reply).await)
        .await
        .expect("it runs");
    world.received.find("item/started", |told| told["item"]["type"] == "commandExecution").await;
    world.interrupt(id, &turn).await.expect("it is running");
    assert_eq!(world.ended(&turn).await, "interrupted");
    ends_once_and_before(&world, &turn);
    let item = world.received.find("item/completed", |told| told["item"]["type"] == "commandExecution").await;
    let shown = (&item["item"]["status"], &item["item"]["exitCode"], &item["item"]["aggregatedOutput"]);
    assert_eq!(shown, (&json!("failed"), &json!(-1), &json!("command aborted by user")));
}

/// Asserts that every item of the turn completed once, before the turn did.
fn ends_once_and_before(world: &World, turn: &str) {
    let received = world.received.all();
    let count = |method: &str| {
        let of_turn = |params: &Value| params["turnId"] == *turn && params["item"]["type"] == "commandExecution";
        received.iter().filter(|(told, params)| told == method && of_turn(params)).count()
    };
    assert_eq!((count("item/started"), count("item/completed")), (1, 1));
    assert_eq!(received.last().map(|(method, _)| method.as_str()), Some("turn/completed"), "{received:#?}");
}

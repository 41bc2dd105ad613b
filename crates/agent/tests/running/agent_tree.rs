//! Child agents: which agents they can send input to, and when they are closed.

use loomd_store::ThreadId;
use loomd_testkit::Gate;
use loomd_testkit::model::{function_call, message};
use serde_json::{Value, json};

use crate::world::{ME, World, answered, until};

/// The output of a call in the model's input.
fn output(world: &World, call_id: &str) -> String {
    let told = world.model.calls().into_iter().rev().find_map(|call| call.tool_output(call_id).cloned());
    told.and_then(|told| told.as_str().map(str::to_owned)).expect("an output")
}

#[tokio::test]
async fn an_agent_can_send_input_only_to_agents_of_its_tree() {
    let world = World::new().await;
    let (mine, other) = (world.start(false).await, world.start(false).await);
    world.model.reply(message("hello"));
    world.ask(other, "hello").await;
    for (target, call_id) in [(other, "1"), (mine, "2")] {
        let target = target.to_string();
        let said = json!({ "target": target, "message": "do it" });
        let opened = json!({ "id": target });
        for (tool, arguments, call_id) in
            [("send_input", said, call_id), ("resume_agent", opened, &format!("r{call_id}"))]
        {
            world.model.reply(function_call(tool, arguments, call_id));
            world.model.reply(message("so be it"));
            assert_eq!(world.ask(mine, "go on").await, "completed");
            assert_eq!(output(&world, call_id), format!("agent with id {target} not found"), "{tool}");
        }
    }
    assert_eq!(world.stored(other).await.len(), 1, "nobody said anything to it");
}

#[tokio::test]
async fn child_agents_are_unloaded_with_their_parent() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(function_call("spawn_agent", json!({ "message": "look around" }), "1"));
    world.model.reply(message("one"));
    world.model.reply(message("two"));
    assert_eq!(world.ask(id, "start one").await, "completed");
    let spawned: Value = serde_json::from_str(&output(&world, "1")).expect("JSON");
    let child = spawned["agent_id"].as_str().expect("an id").to_owned();
    world.received.find("turn/completed", |told| told["threadId"] == child).await;
    assert_eq!(world.threads.loaded().len(), 2);
    answered(async |reply| world.threads.unsubscribe(id, ME, true, reply).await).await.expect("it is loaded");
    until("end of both", async || world.threads.loaded().is_empty()).await;
    world.received.find("thread/closed", |told| told["threadId"] == child).await;
}

/// A thread whose turn has ended while its child agent waits for the model's answer.
struct WithChild {
    parent: ThreadId,
    child: String,
    /// Holds back the model's answer to the child.
    answer: Gate,
}

async fn with_child(world: &World) -> WithChild {
    let parent = world.start(false).await;
    let gates = [Gate::new(), Gate::new()];
    let first = world.model.calls().len();
    world.model.reply(function_call("spawn_agent", json!({ "message": "look around" }), "1"));
    for gate in &gates {
        world.model.reply(message("done").after(gate));
    }
    let turn = world.say(parent, "start one").await.expect("a turn");
    // The two calls may come in either order.
    let mut answer = None;
    for (call, gate) in [(first + 1, &gates[0]), (first + 2, &gates[1])] {
        match world.model.call(call).await.header("x-openai-subagent") {
            Some(_) => answer = Some(gate.clone()),
            None => gate.open(),
        }
    }
    assert_eq!(world.ended(&turn).await, "completed");
    let spawned: Value = serde_json::from_str(&output(world, "1")).expect("JSON");
    let child = spawned["agent_id"].as_str().expect("an id").to_owned();
    WithChild { parent, child, answer: answer.expect("a call of the child") }
}

/// How often the last model call has the notification that the agent has ended.
fn reports(world: &World, child: &str) -> usize {
    let wanted = format!(
        "<subagent_notification>\n{{\"agent_path\":\"{child}\",\"status\":{{\"completed\":\"done\"}}}}\n</subagent_notification>"
    );
    let calls = world.model.calls();
    calls.last().expect("a call").user_texts().into_iter().filter(|text| *text == wanted).count()
}

#[tokio::test]
async fn the_call_after_a_child_turn_completed_has_its_notification() {
    let world = World::new().await;
    for round in 0..8 {
        let WithChild { parent, child, answer } = with_child(&world).await;
        answer.open();
        world.received.find("turn/completed", |told| told["threadId"] == child).await;
        assert_eq!(world.ask(parent, "next").await, "completed");
        assert_eq!(reports(&world, &child), 1, "round {round}");
    }
}

#[tokio::test]
async fn the_call_after_wait_agent_returned_has_the_notification() {
    let world = World::new().await;
    for round in 0..8 {
        let WithChild { parent, child, answer } = with_child(&world).await;
        let call_id = format!("wait {round}");
        world.model.reply(function_call("wait_agent", json!({ "targets": [child] }), &call_id));
        let turn = world.say(parent, "wait for it").await.expect("a turn");
        world.received.find("item/started", |told| told["item"]["id"] == *call_id).await;
        answer.open();
        assert_eq!(world.ended(&turn).await, "completed");
        let calls = world.model.calls();
        let told = calls.iter().position(|call| call.tool_output(&call_id).is_some()).expect("a call with the output");
        assert_eq!(told, calls.len() - 1, "round {round}: the notification cost another call");
        assert_eq!(reports(&world, &child), 1, "round {round}");
    }
}

#[tokio::test]
async fn a_notification_during_a_compaction_is_in_the_next_call() {
    let world = World::new().await;
    let WithChild { parent, child, answer } = with_child(&world).await;
    let gate = Gate::new();
    let calls = world.model.calls().len();
    world.model.reply(message("summary").after(&gate));
    let compaction = world.compact(parent).await;
    world.model.call(calls).await;
    answer.open();
    world.received.find("turn/completed", |told| told["threadId"] == child).await;
    gate.open();
    assert_eq!(world.ended(&compaction).await, "completed");
    assert_eq!(world.ask(parent, "next").await, "completed");
    assert_eq!(reports(&world, &child), 1);
}

//! Agents that start agents: whom they may talk to, and how long they live.

use loomd_testkit::model::{function_call, message};
use serde_json::{Value, json};

use crate::world::{ME, World, answered, until};

/// What the model was told of a call.
fn output(world: &World, call_id: &str) -> String {
    let told = world.model.calls().into_iter().rev().find_map(|call| call.tool_output(call_id).cloned());
    told.and_then(|told| told.as_str().map(str::to_owned)).expect("an output")
}

#[tokio::test]
async fn an_agent_talks_to_its_own_family_only() {
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
async fn agents_go_with_the_one_that_started_them() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(function_call("spawn_agent", json!({ "message": "look around" }), "1"));
    world.model.reply(message("one"));
    world.model.reply(message("two"));
    assert_eq!(world.ask(id, "start one").await, "completed");
    let spawned: Value = serde_json::from_str(&output(&world, "1")).expect("JSON");
    let child = spawned["agent_id"].as_str().expect("an id").to_owned();
    world.heard.find("turn/completed", |told| told["threadId"] == child).await;
    assert_eq!(world.threads.loaded().len(), 2);
    answered(async |reply| world.threads.unsubscribe(id, ME, reply).await).await.expect("it is loaded");
    until("end of both", async || world.threads.loaded().is_empty()).await;
    world.heard.find("thread/closed", |told| told["threadId"] == child).await;
}

//! What the model is told of its calls.

use loomd_testkit::model::{custom_call, function_call};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn whoever_may_not_ask_is_refused_also_where_nothing_is_confined() {
    let world = World::with("approval_policy = \"never\"").await;
    let id = world.start(false).await;
    let wish = json!({ "command": "echo hi", "sandbox_permissions": "require_escalated", "justification": "why not" });
    world.model.reply(function_call("shell_command", wish, "call_1"));
    world.ask(id, "go").await;
    let call = world.model.call(1).await;
    let refusal = "approval policy is Never; reject command — you should not ask for escalated permissions if the \
                   approval policy is Never";
    assert_eq!(call.tool_output("call_1").and_then(Value::as_str), Some(refusal));
}

#[tokio::test]
async fn a_model_that_writes_patches_as_text_is_told_of_commands_in_text() {
    for (freeform, begins) in [(true, "Exit code: 0\nWall time: "), (false, "{\"output\":\"hi\\n\",\"metadata\":")] {
        let world = World::with(&format!("[features]\napply_patch_freeform = {freeform}")).await;
        let id = world.start(false).await;
        world.model.reply(function_call("shell", json!({ "command": ["echo", "hi"] }), "call_1"));
        world.ask(id, "go").await;
        let call = world.model.call(1).await;
        let told = call.tool_output("call_1").and_then(Value::as_str).expect("an output");
        assert!(told.starts_with(begins), "{told}");
    }
}

#[tokio::test]
async fn the_output_of_a_text_tool_carries_no_name() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(custom_call("nothing_like_it", "text", "call_1"));
    world.ask(id, "go").await;
    let call = world.model.call(1).await;
    let input = call.body["input"].as_array().expect("an input");
    let told = input.iter().find(|item| item["type"] == "custom_tool_call_output").expect("an output");
    let expected = json!({
        "type": "custom_tool_call_output",
        "call_id": "call_1",
        "output": "unsupported custom tool call: nothing_like_it",
    });
    assert_eq!(*told, expected);
}

//! The outputs of tool calls that the model is sent.

use loomd_testkit::model::{custom_call, function_call};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn escalation_is_refused_under_the_policy_never_also_without_a_sandbox() {
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
async fn the_output_of_commands_is_text_for_models_with_freeform_patches_and_json_for_others() {
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
async fn the_output_of_a_custom_tool_call_has_no_name() {
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

#[tokio::test]
async fn the_outputs_of_exec_command_and_write_stdin_name_the_command() {
    let world = World::with("[features]\nunified_exec = true").await;
    let id = world.start(false).await;
    world.model.reply(function_call(
        "exec_command",
        json!({ "cmd": "cat", "tty": true, "login": false, "yield_time_ms": 250 }),
        "call_1",
    ));
    world.ask(id, "go").await;
    let call = world.model.call(1).await;
    let told = call.tool_output("call_1").and_then(Value::as_str).expect("an output").to_owned();
    let session: u32 = told
        .split("session ID ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .expect("a session")
        .parse()
        .expect("a number");
    world.model.reply(function_call(
        "write_stdin",
        json!({ "session_id": session, "chars": "\u{4}", "yield_time_ms": 30000 }),
        "call_2",
    ));
    world.ask(id, "end it").await;
    let call = world.model.call(3).await;
    for (call_id, ends) in [
        ("call_1", format!("Process running with session ID {session}")),
        ("call_2", "Process exited with code 0".into()),
    ] {
        let told = call.tool_output(call_id).and_then(Value::as_str).expect("an output");
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].starts_with("Command: ") && lines[0].ends_with("-c cat"), "{told}");
        assert_eq!(lines[3], ends);
    }
}

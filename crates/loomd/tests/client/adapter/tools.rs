//! Tools of the prompt and of the server, approvals, and workspaces.

use std::sync::Arc;

use loomd_adapter::protocol::SandboxMode;
use loomd_adapter::{
    ApprovalPolicy, HostMount, Prompt, Section, Session, Text, Tool, ToolContext, ToolError, ToolSource, Workspace,
};
use loomd_testkit::model::{function_call, message, shell};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Target, evaluate, on_each_target, prompt, setup};
use crate::servers::Server;

on_each_target! {
    two_tools_are_called_and_a_failed_one_is_rolled_back
    commands_are_events
    an_approval_is_decided_by_the_policy
    a_turn_works_in_a_workspace
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    name: String,
    #[serde(default)]
    count: u32,
}

#[derive(Debug, PartialEq)]
struct InStock(String);

fn with_tools() -> Prompt {
    let add = Tool::new("add_item", "Adds an item.", |item: Item, context: ToolContext| async move {
        context.append(InStock(item.name));
        if item.count == 0 {
            return Err(ToolError::new("a count is needed"));
        }
        Ok("added")
    });
    let list =
        Tool::new("list_items", "Lists the items.", |_: loomd_adapter::NoParams, context: ToolContext| async move {
            let names: Vec<_> = context.all::<InStock>().iter().map(|item| item.0.clone()).collect();
            Ok(names.join(", "))
        });
    Prompt::new("test", "tools").section(Section::new("task", "Task", "Go.")).tool(add).tool(list).build().unwrap()
}

async fn two_tools_are_called_and_a_failed_one_is_rolled_back(target: Target) {
    let setup = setup(&target).await;
    setup
        .model
        .reply(function_call("add_item", json!({ "name": "nut", "count": 2 }), "call_1"))
        .reply(function_call("add_item", json!({ "name": "bolt" }), "call_2"))
        .reply(function_call("list_items", json!({}), "call_3"))
        .reply(message("done"));
    let mut session = Session::new();
    let response = evaluate::<Text>(&setup.adapter, &with_tools(), &mut session).await;
    assert_eq!(response.text, "done");
    let stock: Vec<_> = session.all::<InStock>().iter().map(|item| item.0.clone()).collect();
    assert_eq!(stock, ["nut"]);
    let events = session.events();
    let seen: Vec<_> = events
        .iter()
        .filter_map(|event| event.tool_invoked())
        .map(|it| (it.call_id.as_str(), it.name.as_str(), it.success, it.output.as_str()))
        .collect();
    let expected = [
        ("call_1", "add_item", true, "added"),
        ("call_2", "add_item", false, "a count is needed"),
        ("call_3", "list_items", true, "nut"),
    ];
    assert_eq!(seen, expected);
    let last = setup.model.call(3).await.body.to_string();
    assert!(last.contains("a count is needed") && last.contains("\"nut\""), "{last}");
}

async fn commands_are_events(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(shell("echo hi")).reply(shell("exit 3")).reply(message("done"));
    let mut session = Session::new();
    evaluate::<Text>(&setup.adapter, &prompt("Run it."), &mut session).await;
    let events = session.events();
    let seen: Vec<_> = events
        .iter()
        .filter_map(|event| event.tool_invoked())
        .map(|it| (it.source.clone(), it.success, it.output.as_str()))
        .collect();
    assert_eq!(seen, [(ToolSource::Command, true, "hi\n"), (ToolSource::Command, false, "")]);
}

async fn an_approval_is_decided_by_the_policy(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(shell("touch made")).reply(message("done"));
    let adapter = setup.adapter.clone().approvals(ApprovalPolicy::Untrusted);
    let mut session = Session::new();
    evaluate::<Text>(&adapter, &prompt("Make it."), &mut session).await;
    assert!(session.events().iter().filter_map(|event| event.tool_invoked()).all(|it| it.success));
    assert!(setup.home.work().join("made").exists());
}

async fn a_turn_works_in_a_workspace(target: Target) {
    let setup = setup(&target).await;
    std::fs::write(setup.home.work().join("kept"), "original").unwrap();
    let mount = HostMount::new(setup.home.work()).at("copy");
    let workspace = Arc::new(Workspace::builder().mount(mount).allowed_root(setup.home.work()).build().await.unwrap());
    setup.model.reply(shell("cat copy/kept; echo changed > copy/kept")).reply(message("done"));
    let task = Prompt::new("test", "workspace").section(workspace.section()).build().unwrap();
    let mut session = Session::new();
    evaluate::<Text>(&setup.adapter.clone().workspace(Arc::clone(&workspace)), &task, &mut session).await;
    let events = session.events();
    let command = events.iter().find_map(|event| event.tool_invoked()).unwrap();
    assert_eq!((command.success, command.output.as_str()), (true, "original"));
    assert_eq!(std::fs::read_to_string(workspace.path().join("copy/kept")).unwrap(), "changed\n");
    assert_eq!(std::fs::read_to_string(setup.home.work().join("kept")).unwrap(), "original");
}

/// Only spawned: the sandbox of a server in this process needs the program's `main`.
#[tokio::test]
async fn the_sandbox_of_the_adapter_confines_commands() {
    let setup = setup(&Target::Spawned(Server::loomd())).await;
    setup.model.reply(shell("echo no > made")).reply(message("done"));
    let adapter = setup.adapter.clone().sandbox(SandboxMode::ReadOnly);
    let mut session = Session::new();
    evaluate::<Text>(&adapter, &prompt("Make it."), &mut session).await;
    let events = session.events();
    let command = events.iter().find_map(|event| event.tool_invoked()).unwrap();
    assert!(!command.success && !setup.home.work().join("made").exists(), "{command:?}");
}

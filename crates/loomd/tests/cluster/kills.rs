//! The owner of a thread is killed: a node with a subscriber takes the thread over, and the turn goes on there.

use loomd_testkit::model::{added, function_call, message, text_delta};
use loomd_testkit::{Gate, ScriptedModel};
use serde_json::json;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_owner_is_killed_while_the_model_answers_goes_on_at_another_node() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let gate = Gate::new();
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "m1", "content": [] }));
    model.reply(begun.then(text_delta("half ")).wait(&gate)).reply(message("all of it"));
    let turn = first.start_turn(&thread, "go").await.id;
    second.notification("item/agentMessage/delta").await;
    a.kill().await;
    let ended = second.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
    assert_eq!(ended["turn"]["status"], "completed");
    check_order(&second, &thread);
    let last = turns(&second, &thread).await.pop().unwrap();
    assert_eq!((&last["id"], texts(&last, "userMessage")), (&json!(turn), vec!["go".into()]));
    assert_eq!(texts(&last, "agentMessage"), ["all of it"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_owner_is_killed_ends_with_it_and_is_not_run_again() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let command = command_of_a_turn(&cluster, &model, &thread, [&first, &second]).await;
    a.kill().await;
    let ended = second.turn_completed(&thread).await;
    assert_eq!(serde_json::to_value(ended).unwrap()["status"], "completed");
    check_order(&second, &thread);
    assert_eq!(runs(&cluster), [command]);
    let told = model.calls().last().unwrap().tool_output("c1").cloned().expect("an output");
    assert!(told.as_str().unwrap().starts_with("interrupted, outcome unknown"), "{told}");
    until("end of the command", async || (!std::path::Path::new(&format!("/proc/{command}")).exists()).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_whose_owner_is_killed_is_requested_again_by_another_node() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "untrusted").await;
    let_go(&cluster);
    model.reply(function_call("shell_command", counted(&cluster), "c1")).reply(message("done"));
    first.start_turn(&thread, "go").await;
    let (_, before) = second.server_request(APPROVAL).await;
    a.kill().await;
    let (id, again) = second.server_request(APPROVAL).await;
    for field in ["threadId", "turnId", "itemId", "command", "cwd"] {
        assert_eq!(again.get(field), before.get(field), "{field}");
    }
    assert!(runs(&cluster).is_empty());
    second.respond(&id, json!({ "decision": "accept" })).await;
    second.turn_completed(&thread).await;
    check_order(&second, &thread);
    assert_eq!(runs(&cluster).len(), 1);
    let last = turns(&second, &thread).await.pop().unwrap();
    assert_eq!((&last["status"], texts(&last, "agentMessage")), (&json!("completed"), vec!["done".into()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_a_killed_node_resumes_at_another_one_and_finds_what_was_acknowledged() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let first = a.connect().await;
    let thread = start_thread(&cluster, &first, "never").await;
    model.reply(message("one")).reply(message("two"));
    first.run_turn(&thread, "first").await;
    let started = first.request("turn/start", start_params(&thread, "second", "k")).await.expect("a turn");
    a.kill().await;
    // Nobody else is subscribed: a node takes the turn up all the same, or when the client is back.
    let second = subscribed(&b, &thread).await;
    let again = second.request("turn/start", start_params(&thread, "second", "k")).await.expect("the same turn");
    assert_eq!(again["turn"]["id"], started["turn"]["id"]);
    let turns = ended(&second, &thread).await;
    let said: Vec<String> = turns.iter().flat_map(|turn| texts(turn, "userMessage")).collect();
    assert_eq!(said, ["first", "second"]);
    assert_eq!(turns[1]["status"], "completed");
}

//! A thread of one node, as clients of the others see and drive it.

use loomd_testkit::model::{function_call, message, streamed};
use loomd_testkit::{Gate, Peer, ScriptedModel};
use serde_json::{Value, json};

use crate::common::*;

/// The events of a thread after one of them. Consecutive deltas of an item are joined, as for a client that reads
/// slowly.
fn joined(client: &Peer, thread: &str, after: u128) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for event in events(client, thread).into_iter().filter(|event| event_id(event) > after) {
        let delta = |event: &Value| event["params"]["delta"].as_str().map(str::to_owned);
        match (joined.last_mut(), delta(&event)) {
            (Some(last), Some(text))
                if last["method"] == event["method"] && last["params"]["itemId"] == event["params"]["itemId"] =>
            {
                let text = delta(last).unwrap_or_default() + &text;
                *last = event;
                last["params"]["delta"] = text.into();
            }
            _ => joined.push(event),
        }
    }
    joined
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_another_node_sees_every_event_of_a_turn_in_order_and_once() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let resumed = second.request("thread/resume", json!({ "threadId": thread })).await.expect("it is resumed");
    let after: u128 = resumed["eventId"].as_str().expect("the event of the snapshot").parse().unwrap();
    let_go(&cluster);
    model
        .reply(streamed(&["I ", "will ", "run ", "it"]).then(function_call("shell_command", counted(&cluster), "c1")))
        .reply(streamed(&["it ", "ran"]));
    let turn = first.start_turn(&thread, "go").await;
    let (of_first, of_second) = (first.turn_completed(&thread).await, second.turn_completed(&thread).await);
    assert_eq!((&of_first.id, &of_second.id), (&turn.id, &turn.id));
    // Its end is not the last event of a turn.
    let is_idle = |params: &Value| params["threadId"] == thread.as_str() && params["status"]["type"] == "idle";
    let idle = |events: &[Value]| events.iter().any(|event| is_idle(&event["params"]));
    for client in [&first, &second] {
        until("idle thread", async || idle(&joined(client, &thread, after)).then_some(())).await;
    }
    let (of_first, of_second) = (joined(&first, &thread, after), joined(&second, &thread, after));
    assert_eq!(of_first, of_second);
    check_order(&second, &thread);
    assert!(of_second.iter().any(|event| event["method"] == "item/agentMessage/delta"), "{of_second:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_decided_by_a_client_of_a_third_node() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b, c])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "untrusted").await;
    let third = subscribed(&c, &thread).await;
    let_go(&cluster);
    model.reply(function_call("shell_command", counted(&cluster), "c1")).reply(message("done"));
    first.start_turn(&thread, "go").await;
    for client in [&first, &second] {
        assert_eq!(client.server_request(APPROVAL).await.1["itemId"], "c1");
    }
    let (id, asked) = third.server_request(APPROVAL).await;
    assert_eq!((asked["threadId"].as_str(), &asked["itemId"]), (Some(thread.as_str()), &json!("c1")));
    assert!(runs(&cluster).is_empty());
    third.respond(&id, json!({ "decision": "accept" })).await;
    for client in [&first, &second, &third] {
        client.notification_where("serverRequest/resolved", |params| params["threadId"] == thread.as_str()).await;
        client.turn_completed(&thread).await;
        check_order(client, &thread);
    }
    assert_eq!(runs(&cluster).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_steered_and_interrupted_by_a_client_of_another_node() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let gate = Gate::new();
    model.reply(streamed(&["half"]).wait(&gate)).reply(message("both"));
    let turn = second.start_turn(&thread, "one").await.id;
    first.notification("item/agentMessage/delta").await;
    let mut steer = start_params(&thread, "two", "s1");
    steer["expectedTurnId"] = json!(turn);
    second.request("turn/steer", steer).await.expect("the turn is steered");
    gate.open();
    assert_eq!(first.turn_completed(&thread).await.id, turn);
    let said = turns(&second, &thread).await.pop().unwrap();
    assert_eq!(texts(&said, "userMessage"), ["one", "two"]);

    model.reply(function_call("shell_command", counted(&cluster), "c1"));
    let turn = first.start_turn(&thread, "three").await.id;
    until_it_runs(&cluster).await;
    second.request("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await.expect("it is interrupted");
    for client in [&first, &second] {
        let ended = client.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
        assert_eq!(ended["turn"]["status"], "interrupted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_reads_on_another_node_show_the_live_status_of_a_thread() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let first = a.connect().await;
    let thread = start_thread(&cluster, &first, "never").await;
    let gate = Gate::new();
    model.reply(streamed(&["half"]).wait(&gate));
    let turn = first.start_turn(&thread, "go").await.id;
    first.notification("item/agentMessage/delta").await;
    // This client is not subscribed to the thread.
    let second = b.connect().await;
    let status = async |client: &Peer| {
        let listed = client.request("thread/list", json!({})).await.expect("a list");
        let listed = listed["data"].as_array().unwrap().iter().find(|row| row["id"] == thread.as_str()).cloned();
        let loaded = client.request("thread/loaded/list", json!({})).await.expect("a list");
        let read =
            client.request("thread/read", json!({ "threadId": thread, "includeTurns": true })).await.expect("read");
        (
            listed.expect("the thread is listed")["status"]["type"].clone(),
            loaded["data"].as_array().unwrap().contains(&json!(thread)),
            read["thread"]["status"]["type"].clone(),
            read["thread"]["turns"].as_array().unwrap().iter().map(|turn| turn["status"].clone()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(status(&second).await, (json!("active"), true, json!("active"), vec![json!("inProgress")]));
    gate.open();
    let ended = first.turn_completed(&thread).await;
    assert_eq!(ended.id, turn);
    until("idle thread", async || {
        (status(&second).await == (json!("idle"), true, json!("idle"), vec![json!("completed")])).then_some(())
    })
    .await;
}

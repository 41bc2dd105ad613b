//! Which node may do what: tokens of nodes, labels, and requests that are sent to two nodes.

use std::sync::Arc;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Gate, ScriptedModel};
use serde_json::json;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_another_token_is_refused_by_the_owner_of_a_thread() {
    let model = ScriptedModel::start().await;
    let Some((mut cluster, [a])) = cluster(&model).await else { return };
    let stranger = cluster.add_with_token(&model, "another-token-0123456789abcdef0123456789abcdef").await;
    let first = a.connect().await;
    let thread = start_thread(&cluster, &first, "never").await;
    model.reply(message("one"));
    first.run_turn(&thread, "first").await;
    let second = stranger.connect().await;
    let refused = second.request("thread/resume", json!({ "threadId": thread })).await.expect_err("it is refused");
    assert!(refused.message.contains("node"), "{refused:?}");
    let refused = second.request("turn/start", start_params(&thread, "second", "k")).await;
    refused.expect_err("it is refused");
    // The owner's client is not disturbed.
    model.reply(message("two"));
    first.run_turn(&thread, "second").await;
    assert_eq!(turns(&first, &thread).await.len(), 2);
    assert_eq!(model.calls().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placed_thread_is_taken_over_by_a_node_with_its_label_only() {
    let model = ScriptedModel::start().await;
    let Some(mut cluster) = empty_cluster() else { return };
    let labelled = "[loomd]\nnode_labels = [\"workshop\", \"north\"]\n";
    let (a, b) = (cluster.add(&model, labelled).await, cluster.add(&model, "").await);
    let c = cluster.add(&model, labelled).await;
    let first = a.connect().await;
    let params = json!({ "cwd": cluster.work(), "approvalPolicy": "never", "placement": ["workshop"] });
    let thread = start_thread_with(&first, params).await;
    model.reply(message("ready"));
    first.run_turn(&thread, "get ready").await;
    // The only subscriber is at a node without the label.
    let second = subscribed(&b, &thread).await;
    model.reply(function_call("shell_command", counted(&cluster), "c1")).reply(message("I see"));
    let turn = first.start_turn(&thread, "go").await.id;
    until_it_runs(&cluster).await;
    a.kill().await;
    let ended = second.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
    assert_eq!(ended["turn"]["status"], "completed");
    let owner = "SELECT n.url FROM loomd.lease l JOIN loomd.node n USING (session)";
    assert_eq!(cluster.sql(owner), format!("ws://127.0.0.1:{}", c.peers().port()));
    assert_eq!(runs(&cluster).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_started_at_two_nodes_with_one_key_is_one_turn() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let gate = Gate::new();
    model.reply(message("once").after(&gate));
    let params = || start_params(&thread, "go", "the key");
    let (one, two) = tokio::join!(first.request("turn/start", params()), second.request("turn/start", params()));
    let (one, two) = (one.expect("a turn"), two.expect("the same turn"));
    assert_eq!(one["turn"]["id"], two["turn"]["id"]);
    gate.open();
    first.turn_completed(&thread).await;
    second.turn_completed(&thread).await;
    let turns = turns(&second, &thread).await;
    assert_eq!((turns.len(), texts(&turns[1], "userMessage"), model.calls().len()), (2, vec!["go".into()], 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_started_at_two_nodes_with_one_key_is_one_thread() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let clients = [a.connect().await, b.connect().await];
    let params = || json!({ "cwd": cluster.work(), "idempotencyKey": "the key" });
    let starts = clients.each_ref().map(|client| client.request("thread/start", params()));
    let [one, two] = starts;
    let (one, two) = tokio::join!(one, two);
    assert_eq!(one.expect("a thread")["thread"]["id"], two.expect("the same thread")["thread"]["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_on_an_empty_database_all_serve() {
    let model = ScriptedModel::start().await;
    let Some((mut cluster, [a])) = cluster(&model).await else { return };
    let b = cluster.add(&model, "").await;
    for node in [&a, &b] {
        node.kill().await;
    }
    cluster.sql("DROP SCHEMA loomd CASCADE");
    let starts = [&a, &b].map(|node| {
        let node = Arc::clone(node);
        tokio::spawn(async move { node.start().await })
    });
    for start in starts {
        start.await.unwrap().expect("it starts");
    }
    for node in [&a, &b] {
        let client = node.connect().await;
        start_thread(&cluster, &client, "never").await;
    }
}

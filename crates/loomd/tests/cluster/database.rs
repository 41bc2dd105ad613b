//! The database is restarted under the nodes.

use std::sync::Arc;

use loomd_testkit::model::{added, function_call, message, text_delta};
use loomd_testkit::{Cluster, Database, Gate, Postgres, ScriptedModel};
use serde_json::json;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_goes_on_when_the_database_is_restarted_in_the_middle_of_it() {
    let model = ScriptedModel::start().await;
    // The server that other tests share is not stopped.
    let Some(postgres) = Postgres::private().map(Arc::new) else { return };
    let mut cluster = Cluster::new(LOOMD, Some(Database::Own(Arc::clone(&postgres))), SESSION_TTL * 5);
    let (a, b) = (cluster.add(&model, "").await, cluster.add(&model, "").await);
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let_go(&cluster);
    let gate = Gate::new();
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "m1", "content": [] }));
    model.reply(begun.then(text_delta("half ")).wait(&gate).then(function_call(
        "shell_command",
        counted(&cluster),
        "c1",
    )));
    model.reply(message("done"));
    let turn = first.start_turn(&thread, "go").await.id;
    second.notification("item/agentMessage/delta").await;
    let restarted = Arc::clone(&postgres);
    tokio::task::spawn_blocking(move || restarted.restart()).await.unwrap();
    gate.open();
    for client in [&first, &second] {
        let ended = client.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
        assert_eq!(ended["turn"]["status"], "completed");
        check_order(client, &thread);
    }
    assert_eq!(runs(&cluster).len(), 1);
    for client in [&first, &second] {
        let last = turns(client, &thread).await.pop().unwrap();
        assert_eq!(texts(&last, "userMessage"), ["go"]);
        assert_eq!(texts(&last, "agentMessage").last().unwrap(), "done");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_turns_at_once_than_connections_to_the_database_all_end() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let clients = [a.connect().await, b.connect().await];
    let gate = Gate::new();
    let mut threads = Vec::new();
    for number in 0..48 {
        model.reply(message(&format!("answer {number}")).after(&gate));
        let client = &clients[number % 2];
        let thread = start_thread(&cluster, client, "never").await;
        client.start_turn(&thread, "go").await;
        threads.push(thread);
    }
    // All of them append what they were answered at the same moment.
    gate.open();
    for (number, thread) in threads.iter().enumerate() {
        clients[number % 2].turn_completed(thread).await;
    }
    let stored = cluster.sql("SELECT count(*) FROM loomd.thread WHERE preview IS NOT NULL");
    assert_eq!(stored, "48");
}

//! The owner of a thread is paused, or cut off from the database, for longer than its session lives. It is alive, and
//! has to find out that the thread is another node's.

use std::path::Path;

use loomd_testkit::model::message;
use loomd_testkit::{ScriptedModel, Signal, WsConnection};
use serde_json::{Value, json};

use crate::common::*;

/// Checks what is left of a turn at a node that has lost it: its command is ended, its client got nothing more under
/// the old epoch, and is served by the new owner.
async fn check_lost(first: &WsConnection, seen: &[Value], thread: &str, command: u32) {
    until("end of the command", async || (!Path::new(&format!("/proc/{command}")).exists()).then_some(())).await;
    let turns = ended(first, thread).await;
    assert_eq!(turns.last().unwrap()["status"], "completed");
    let old = epoch(seen.last().unwrap());
    let late: Vec<Value> = events(first, thread).split_off(seen.len());
    assert!(late.iter().all(|event| epoch(event) > old), "shown after the thread was lost: {late:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_paused_beyond_its_session_writes_shows_and_runs_nothing_more() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let command = command_of_a_turn(&cluster, &model, &thread, [&first, &second]).await;
    a.signal(Signal::STOP).await;
    let seen = events(&first, &thread);
    second.turn_completed(&thread).await;
    check_order(&second, &thread);
    let stored = cluster.sql("SELECT count(*) FROM loomd.event");
    a.signal(Signal::CONT).await;
    check_lost(&first, &seen, &thread, command).await;
    assert_eq!(cluster.sql("SELECT count(*) FROM loomd.event"), stored);
    assert_eq!(runs(&cluster), [command]);
    // The node is one like the others again.
    model.reply(message("back"));
    first.request("thread/resume", json!({ "threadId": thread })).await.expect("it is resumed");
    let turn = first.start_turn(&thread, "again").await.id;
    second.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_cut_off_from_the_database_stops_before_another_node_takes_the_thread() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let command = command_of_a_turn(&cluster, &model, &thread, [&first, &second]).await;
    a.database().silence();
    let seen = events(&first, &thread);
    second.turn_completed(&thread).await;
    check_order(&second, &thread);
    assert!(!Path::new(&format!("/proc/{command}")).exists(), "the command outlives its node's session");
    a.database().heal();
    check_lost(&first, &seen, &thread, command).await;
    assert_eq!(runs(&cluster), [command]);
}

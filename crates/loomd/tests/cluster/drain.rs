//! SIGTERM: a node lets its threads go, and clients and turns go on elsewhere.

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Gate, ScriptedModel, Signal};
use serde_json::json;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_of_a_node_that_drains_goes_on_at_another_one_after_the_running_step() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    let gate = Gate::new();
    let_go(&cluster);
    model.reply(function_call("shell_command", counted(&cluster), "c1").after(&gate)).reply(message("done"));
    let turn = first.start_turn(&thread, "go").await.id;
    model.call(1).await;
    a.signal(Signal::TERM).await;
    first.notification("server/draining").await;
    gate.open();
    let ended = second.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
    assert_eq!(ended["turn"]["status"], "completed");
    check_order(&second, &thread);
    first.closed().await;
    a.drained().await;
    assert_eq!(runs(&cluster).len(), 1);
    let last = turns(&second, &thread).await.pop().unwrap();
    assert_eq!((&last["id"], texts(&last, "agentMessage")), (&json!(turn), vec!["done".into()]));
    // Its session ended with it, and did not have to expire.
    assert_eq!(cluster.sql("SELECT count(*) FROM loomd.node"), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_thread_of_a_node_that_has_drained_is_driven_at_another_one_at_once() {
    let model = ScriptedModel::start().await;
    let Some((cluster, [a, b])) = cluster(&model).await else { return };
    let (first, second, thread) = shared_thread(&cluster, &model, &a, &b, "never").await;
    a.signal(Signal::TERM).await;
    first.notification("server/draining").await;
    first.closed().await;
    a.drained().await;
    model.reply(message("still here"));
    let turn = second.start_turn(&thread, "and now?").await.id;
    let ended = second.notification_where("turn/completed", |params| params["turn"]["id"] == turn.as_str()).await;
    assert_eq!(ended["turn"]["status"], "completed");
}

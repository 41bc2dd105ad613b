//! Approvals that are decided without a client's request, and events that can be read again.

use loomd_agent::{ApprovalDecision, ApprovalRequest, DecideError, EventKind, Source};
use loomd_protocol::CommandExecutionApprovalDecision;
use loomd_testkit::model::{function_call, message};
use serde_json::json;

use crate::world::{ME, World, answered, until};

#[tokio::test]
async fn a_command_that_is_approved_without_a_server_request_runs() {
    let world = World::new().await;
    let id = world.start(false).await;
    let arguments = json!({ "command": "echo approved > made", "login": false });
    world.model.reply(function_call("shell_command", arguments, "call_1")).reply(message("done"));
    let input = crate::world::input("run it");
    let turn = world.say_with(id, json!({ "input": input, "approvalPolicy": "untrusted" })).await.expect("a turn");
    until("an approval", async || !world.threads.approvals(id).is_empty()).await;
    let approvals = world.threads.approvals(id);
    let [approval] = &approvals[..] else { panic!("{approvals:?}") };
    let ApprovalRequest::Command(params) = &approval.request else { panic!("{approval:?}") };
    assert_eq!((&params.turn_id, params.item_id.as_str()), (&turn, "call_1"));
    let accept = || ApprovalDecision::Command(CommandExecutionApprovalDecision::Accept);
    assert_eq!(world.threads.decide(id, approval.id, accept()), Ok(()));
    assert!(world.threads.decide(id, approval.id, accept()).is_err(), "the first decision wins");
    assert_eq!(world.ended(&turn).await, "completed");
    assert_eq!(std::fs::read_to_string(world.home.work().join("made")).expect("a file"), "approved\n");
    assert!(world.threads.approvals(id).is_empty());
    assert_eq!(world.threads.decide(id, approval.id, accept()), Err(DecideError::Unknown));
}

#[tokio::test]
async fn event_ids_rise_within_a_thread_also_when_it_is_unloaded_and_loaded_again() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let first = world.received.ids();
    answered(async |reply| world.threads.unsubscribe(id, ME, true, reply).await).await.expect("a status");
    answered(async |reply| world.threads.resume(Source::Id(id), false, world.resolve(), ME, reply).await)
        .await
        .expect("a thread");
    world.ask(id, "second").await;
    let all = world.received.ids();
    assert!(all.len() > first.len() && all.is_sorted_by(|one, next| one < next), "{all:?}");
    assert!(world.threads.events_after(id, first[0]).is_none(), "the log of an earlier load is gone");
    let [.., before, _, _] = &all[..] else { panic!("{all:?}") };
    let again = world.threads.events_after(id, *before).expect("recent events");
    assert_eq!(again.iter().map(|event| event.id).collect::<Vec<_>>(), all[all.len() - 2..]);
    assert!(matches!(&again[1].kind, EventKind::Notification(last) if last.method() == "turn/completed"), "{again:?}");
}

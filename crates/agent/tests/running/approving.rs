//! Approvals that are decided without a client's request, and events that can be read again.

use loomd_agent::{ApprovalRequest, DecideError, EventKind, Source};
use loomd_protocol::{ApprovalFilter, ApprovalState};
use loomd_store::Decider;
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
    let by = || Decider { connection: "me".into(), client: None, role: None };
    let decide = async |decision: &str| world.threads.decide(approval.id, &json!(decision), by()).await;
    let invalid = decide("maybe").await;
    assert!(matches!(&invalid, Err(DecideError::Invalid(_))), "{invalid:?}");
    let decided = decide("accept").await.expect("a decision");
    assert_eq!((decided.state, decided.decision), (ApprovalState::Decided, Some(json!("accept"))));
    assert_eq!(world.ended(&turn).await, "completed");
    assert_eq!(std::fs::read_to_string(world.home.work().join("made")).expect("a file"), "approved\n");
    assert!(world.threads.approvals(id).is_empty());
    let Err(DecideError::Ended(first)) = decide("decline").await else { panic!("the first decision wins") };
    assert_eq!((first.by, first.decision), (Some(by()), Some(json!("accept"))));
    let listed = world.threads.list_approvals(Some(id), None, None, None).await.expect("a list");
    let [shown] = &listed.data[..] else { panic!("{listed:?}") };
    assert_eq!((shown.id.clone(), shown.state), (approval.id.to_string(), ApprovalState::Decided));
    assert_eq!((&shown.params["itemId"], shown.turn_id.as_ref()), (&json!("call_1"), Some(&turn)));
    let open = world.threads.list_approvals(None, Some(ApprovalFilter::Open), None, None).await.expect("a list");
    assert_eq!((open.data, open.next_cursor), (Vec::new(), None));
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

//! Approvals in the work store.

use loomd_protocol::JsonValue;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{ApprovalEnd, ApprovalOutcome, ApprovalQuery, Decider, Settled, StaleApprovals, StoredApproval};

fn open(id: ThreadId, turn: &str, asked_at_ms: i64) -> StoredApproval {
    StoredApproval {
        id: Uuid::now_v7(),
        thread_id: id,
        turn_id: turn.into(),
        item_id: "item".into(),
        method: "item/commandExecution/requestApproval".into(),
        params: json!({ "command": "print \u{0}", "n": 1 }),
        asked_at_ms,
        deadline_ms: Some(asked_at_ms + 1),
        default_decision: Some("decline".into()),
        outcome: None,
    }
}

fn decided(decision: JsonValue) -> ApprovalOutcome {
    let by = Decider { connection: "7".into(), client: Some("c".into()), role: Some("approve".into()) };
    ApprovalOutcome { end: ApprovalEnd::Decided, decision: Some(decision), at_ms: 9, by: Some(by) }
}

fn all(thread_id: Option<ThreadId>) -> ApprovalQuery {
    ApprovalQuery { thread_id, open: None, before: None, limit: 100 }
}

pub async fn the_first_decision_about_an_approval_counts_in_every_process(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (ours, theirs) = (ours.work(), theirs.work());
    let id = ThreadId::new();
    let approval = open(id, "turn", 5);
    assert_eq!(ours.approval(approval.id).await.unwrap(), None);
    assert_eq!(ours.settle_approval(approval.id, decided(json!("accept"))).await.unwrap(), Settled::Unknown);
    ours.ask_approval(approval.clone(), None).await.unwrap();
    assert_eq!(theirs.approval(approval.id).await.unwrap(), Some(approval.clone()));
    let first = decided(json!({ "accept": ["\u{0}", 1] }));
    assert_eq!(theirs.settle_approval(approval.id, first.clone()).await.unwrap(), Settled::Now);
    let second = ours.settle_approval(approval.id, ApprovalOutcome::cancelled()).await.unwrap();
    assert_eq!(second, Settled::Earlier(first.clone()));
    let settled = StoredApproval { outcome: Some(first), ..approval };
    assert_eq!(ours.approvals_of_turn(id, "turn".into()).await.unwrap(), [settled]);
}

pub async fn approvals_are_listed_in_pages_newest_first(harness: &impl Harness) {
    let store = harness.open();
    let work = store.work();
    let (one, other) = (ThreadId::new(), ThreadId::new());
    let approvals = [open(one, "a", 1), open(other, "b", 2), open(one, "a", 3), open(one, "c", 4)];
    for approval in &approvals {
        work.ask_approval(approval.clone(), None).await.unwrap();
    }
    work.settle_approval(approvals[2].id, decided(json!("accept"))).await.unwrap();
    let ids = async |query: ApprovalQuery| {
        let found = work.approvals(query).await.unwrap();
        let place = |id: Uuid| approvals.iter().position(|approval| approval.id == id).unwrap();
        found.into_iter().map(|approval| place(approval.id)).collect::<Vec<_>>()
    };
    assert_eq!(ids(all(None)).await, [3, 2, 1, 0]);
    assert_eq!(ids(all(Some(one))).await, [3, 2, 0]);
    assert_eq!(ids(ApprovalQuery { open: Some(true), ..all(Some(one)) }).await, [3, 0]);
    assert_eq!(ids(ApprovalQuery { open: Some(true), ..all(None) }).await, [3, 1, 0]);
    assert_eq!(ids(ApprovalQuery { open: Some(false), ..all(None) }).await, [2]);
    assert_eq!(ids(ApprovalQuery { limit: 2, ..all(None) }).await, [3, 2]);
    assert_eq!(ids(ApprovalQuery { before: Some(approvals[2].id), ..all(None) }).await, [1, 0]);
    let of_turn = work.approvals_of_turn(one, "a".into()).await.unwrap();
    assert_eq!(of_turn.iter().map(|approval| approval.id).collect::<Vec<_>>(), [approvals[0].id, approvals[2].id]);
    work.forget(one).await.unwrap();
    assert_eq!(ids(all(None)).await, [1]);
}

pub async fn approvals_end_with_their_thread(harness: &impl Harness) {
    let store = harness.open();
    let (id, reader) = thread(&*store, "hello").await;
    drop(reader);
    let (own, other) = (open(id, "turn", 1), open(ThreadId::new(), "turn", 1));
    for approval in [&own, &other] {
        store.work().ask_approval(approval.clone(), None).await.unwrap();
    }
    store.delete(id).await.unwrap();
    assert_eq!(harness.open().work().approvals(all(None)).await.unwrap(), [other]);
}

pub async fn stale_approvals_of_a_thread_are_cancelled(harness: &impl Harness) {
    let store = harness.open();
    let work = store.work();
    let (id, other) = (ThreadId::new(), ThreadId::new());
    let approvals =
        [open(id, "left", 1), open(id, "going on", 2), open(id, "left", 3), open(id, "now", 50), open(other, "x", 1)];
    for approval in &approvals {
        work.ask_approval(approval.clone(), None).await.unwrap();
    }
    work.settle_approval(approvals[2].id, decided(json!("accept"))).await.unwrap();
    let ends = async || {
        let mut ends = Vec::new();
        for approval in &approvals {
            ends.push(work.approval(approval.id).await.unwrap().unwrap().outcome.map(|outcome| outcome.end));
        }
        ends
    };
    let stale = StaleApprovals { before_ms: 50, except_turn: Some("going on".into()) };
    work.ask_approval(open(id, "now", 51), Some(stale.clone())).await.unwrap();
    let (decided, cancelled) = (Some(ApprovalEnd::Decided), Some(ApprovalEnd::Cancelled));
    assert_eq!(ends().await, [cancelled, None, decided, None, None]);
    assert_eq!(work.cancel_stale_approvals(id, stale).await.unwrap(), 0);
    let stale = StaleApprovals { before_ms: 50, except_turn: None };
    assert_eq!(work.cancel_stale_approvals(id, stale).await.unwrap(), 1);
    assert_eq!(ends().await, [cancelled, cancelled, decided, None, None]);
    let outcome = work.approval(approvals[0].id).await.unwrap().unwrap().outcome.unwrap();
    assert!(outcome.decision.is_none() && outcome.by.is_none() && outcome.at_ms > 0);
}

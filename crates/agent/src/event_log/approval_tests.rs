use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loomd_protocol::{
    ApprovalDefault, FileChangeApprovalDecision, FileChangeRequestApprovalParams, ToolRequestUserInputResponse, Turn,
    TurnCompletedNotification, TurnStatus,
};
use loomd_store::{ApprovalEnd, Decider, FileStore, Options, Store, StoredApproval, ThreadId, WorkStore};
use serde_json::json;

use super::approvals::{OpenApproval, Resolution};
use super::testing::{Received, log};
use super::*;
use crate::approval::{ApprovalDecision, ApprovalId, ApprovalParams, ApprovalRequest, DecideError, Decided};

const TURN: &str = "turn";

pub(super) fn decider(connection: &str) -> Decider {
    Decider { connection: connection.into(), client: Some("test".into()), role: None }
}

fn patch(item_id: &str, started_at_ms: i64) -> ApprovalRequest {
    let (thread_id, turn_id, item_id) = ("t".into(), TURN.into(), item_id.into());
    FileChangeRequestApprovalParams { thread_id, turn_id, item_id, reason: None, grant_root: None, started_at_ms }
        .into_request()
}

fn accept() -> ApprovalDecision {
    ApprovalDecision::Patch(FileChangeApprovalDecision::Accept)
}

fn decline() -> ApprovalDecision {
    ApprovalDecision::Patch(FileChangeApprovalDecision::Decline)
}

/// A thread that is loaded again and again.
struct Home {
    work: WorkStore,
    id: ThreadId,
    timeout: Option<(Duration, ApprovalDefault)>,
}

impl Home {
    fn new() -> Self {
        Self { work: WorkStore::default(), id: ThreadId::new(), timeout: None }
    }

    fn load(&self, received: &Arc<Received>) -> EventLog {
        let kept = KeptApprovals::new(self.id, self.work.clone(), Box::new(|| true)).with_timeout(self.timeout);
        log(received, &[1]).with_approvals(kept)
    }

    async fn stored(&self) -> Vec<StoredApproval> {
        self.work.approvals_of_turn(self.id, TURN.into()).await.unwrap()
    }

    async fn ends(&self) -> Vec<Option<ApprovalEnd>> {
        self.stored().await.into_iter().map(|approval| approval.outcome.map(|outcome| outcome.end)).collect()
    }
}

async fn resolved(mut open: OpenApproval<'_>, decided: Option<Decided>) -> Resolution {
    let resolution = open.settle(decided).await;
    open.resolve().await;
    resolution
}

fn turn_completed() -> ServerNotification {
    let turn = Turn { id: TURN.into(), status: TurnStatus::Completed, ..Default::default() };
    ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id: "t".into(), turn, usage: None })
}

fn kinds(received: &Received) -> Vec<&'static str> {
    let name = |event: Event| match event.kind {
        EventKind::ApprovalRequested(_) => "requested",
        EventKind::ApprovalResolved(_) => "resolved",
        EventKind::Notification(notification) => notification.method(),
    };
    received.events().into_iter().map(|(_, event)| name(event)).collect()
}

#[tokio::test]
async fn the_first_decision_about_an_approval_wins_and_is_stored_before_it_is_acknowledged() {
    let (home, received) = (Home::new(), Arc::default());
    let events = home.load(&received);
    let mut open = events.request(patch("i", 1)).await;
    let stored = home.stored().await;
    assert_eq!((stored.len(), &stored[0].params["itemId"], &stored[0].outcome), (1, &json!("i"), &None));
    let id = events.approvals()[0].id;
    let wrong = |_: &ApprovalRequest| {
        Ok(ApprovalDecision::UserInput(ToolRequestUserInputResponse { answers: Default::default() }))
    };
    let refused = events.decide(id, wrong, decider("1")).await;
    assert_eq!(refused, Err(DecideError::WrongKind { expected: "patch" }));
    let (first, resolution) = tokio::join!(events.decide(id, |_| Ok(accept()), decider("1")), async {
        let decided = open.decision().await;
        let second = events.decide(id, |_| Ok(decline()), decider("2")).await;
        assert_eq!(second, Err(DecideError::Decided(decider("1"))));
        assert_eq!(home.ends().await, [None], "nothing acts on it yet");
        resolved(open, decided).await
    });
    assert_eq!(resolution.decision, Some(accept()));
    let stored = home.stored().await;
    assert_eq!(first, Ok(stored[0].clone()));
    assert_eq!(resolution.ended.as_ref(), Some(&stored[0]));
    let outcome = stored[0].outcome.clone().unwrap();
    assert_eq!(
        (outcome.end, outcome.decision, outcome.by),
        (ApprovalEnd::Decided, Some(json!("accept")), Some(decider("1")))
    );
    assert_eq!(events.decide(id, |_| Ok(decline()), decider("2")).await, Err(DecideError::Unknown));
    assert_eq!(kinds(&received), ["requested", "resolved"]);
    assert_eq!(*received.withdrawn.lock(), [id]);
}

#[tokio::test]
async fn an_open_approval_is_asked_again_under_its_id_and_deadline_by_the_next_load() {
    let mut home = Home::new();
    home.timeout = Some((Duration::from_secs(3600), ApprovalDefault::Cancel));
    let received = Arc::default();
    drop(home.load(&received).request(patch("i", 1)).await);
    let before = home.stored().await;
    assert_eq!((before.len(), before[0].outcome.is_none()), (1, true));
    home.timeout = None;
    let received = Arc::default();
    let events = home.load(&received);
    assert_eq!(events.recall_approvals(TURN).await, Ok(1));
    let mut open = events.request(patch("i", 2)).await;
    let other = events.request(patch("i", 2)).await;
    let approvals = events.approvals();
    assert_eq!(approvals[0].id.0, before[0].id);
    assert_eq!(approvals[0].asked_at_ms, before[0].asked_at_ms);
    assert_eq!(approvals[0].deadline, before[0].deadline_ms.map(|at_ms| (at_ms, ApprovalDefault::Cancel)));
    assert_ne!(approvals[1].id.0, before[0].id, "each is used once");
    assert_eq!(approvals[1].deadline, None);
    let _stored = approvals[0].decide(accept(), decider("1")).unwrap();
    let decided = open.decision().await;
    assert_eq!(resolved(open, decided).await.decision, Some(accept()));
    resolved(other, None).await;
    assert_eq!(home.ends().await, [Some(ApprovalEnd::Decided), Some(ApprovalEnd::Cancelled)]);
}

#[tokio::test]
async fn a_decision_of_an_earlier_load_counts_at_once_once_and_is_not_published() {
    let (home, received) = (Home::new(), Arc::default());
    let events = home.load(&received);
    let mut open = events.request(patch("i", 1)).await;
    let _stored = events.approvals()[0].decide(accept(), decider("1")).unwrap();
    let decided = open.decision().await;
    resolved(open, decided).await;
    let received = Arc::default();
    let events = home.load(&received);
    events.recall_approvals(TURN).await.unwrap();
    let other = events.request(patch("another", 1)).await;
    assert_eq!(kinds(&received), ["requested"], "a decision about another item does not count");
    resolved(other, None).await;
    let mut again = events.request(patch("i", 2)).await;
    let decided = again.decision().await;
    assert_eq!(resolved(again, decided).await.decision, Some(accept()));
    assert_eq!(kinds(&received), ["requested", "resolved"]);
    let third = events.request(patch("i", 2)).await;
    assert_eq!(events.approvals().len(), 1);
    resolved(third, None).await;
}

#[tokio::test]
async fn a_recalled_approval_can_be_decided_before_its_turn_asks_again() {
    let (home, received) = (Home::new(), Arc::default());
    drop(home.load(&received).request(patch("i", 1)).await);
    let received = Arc::default();
    let events = home.load(&received);
    events.recall_approvals(TURN).await.unwrap();
    let id = ApprovalId(home.stored().await[0].id);
    let decided = events.decide(id, |_| Ok(decline()), decider("1")).await.unwrap();
    assert_eq!(home.stored().await, [decided]);
    assert_eq!(events.recalled_decision(&patch("i", 3)), Some(decline()));
    assert_eq!(kinds(&received), [] as [&str; 0]);
}

#[tokio::test]
async fn the_default_counts_at_the_deadline_also_when_that_passed_between_two_loads() {
    let mut home = Home::new();
    home.timeout = Some((Duration::ZERO, ApprovalDefault::Accept));
    let received = Arc::default();
    let events = home.load(&received);
    let mut open = events.request(patch("i", 1)).await;
    let decided = open.decision().await;
    assert_eq!(resolved(open, decided).await.decision, Some(accept()));
    drop(events.request(patch("left", 1)).await);
    let received = Arc::default();
    let events = home.load(&received);
    events.recall_approvals(TURN).await.unwrap();
    let mut open = events.request(patch("left", 1)).await;
    let decided = open.decision().await;
    assert_eq!(resolved(open, decided).await.decision, Some(accept()));
    assert_eq!(kinds(&received), [] as [&str; 0], "no client could have decided");
    let stored = home.stored().await;
    assert_eq!(home.ends().await, [Some(ApprovalEnd::Expired), Some(ApprovalEnd::Expired)]);
    let by = stored[1].outcome.clone().unwrap().by.unwrap();
    assert_eq!((by.connection.as_str(), by.client), ("deadline", None));
}

#[tokio::test]
async fn what_a_turn_leaves_open_is_cancelled_at_its_end() {
    let (home, received) = (Home::new(), Arc::default());
    drop(home.load(&received).request(patch("recalled", 1)).await);
    let events = home.load(&received);
    events.recall_approvals(TURN).await.unwrap();
    drop(events.request(patch("dropped", 1)).await);
    assert_eq!(home.ends().await, [None, None]);
    events.publish(turn_completed()).await;
    assert_eq!(home.ends().await, [Some(ApprovalEnd::Cancelled), Some(ApprovalEnd::Cancelled)]);
}

#[tokio::test]
async fn what_an_earlier_load_left_open_is_cancelled_with_the_next_approval() {
    let (home, received) = (Home::new(), Arc::default());
    drop(home.load(&received).request(patch("left", 1)).await);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let events = home.load(&received);
    let open = events.request(patch("new", 1)).await;
    assert_eq!(home.ends().await, [Some(ApprovalEnd::Cancelled), None]);
    resolved(open, None).await;
}

#[tokio::test]
async fn an_approval_that_cannot_be_stored_is_declined_and_the_clients_are_warned() {
    let dir = tempfile::tempdir().unwrap();
    // A folder takes the place of the database.
    let store = FileStore::new(Options { home: dir.path().to_path_buf(), sqlite_home: None });
    for name in ["loomd-work.sqlite", "loomd/loomd-work.sqlite"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    let home = Home { work: store.work().clone(), ..Home::new() };
    let received = Arc::default();
    let events = home.load(&received);
    let mut open = events.request(patch("i", 1)).await;
    let decided = open.decision().await;
    assert_eq!(resolved(open, decided).await.decision, Some(decline()));
    assert_eq!(kinds(&received), ["warning"]);
}

#[tokio::test]
async fn approvals_of_an_ephemeral_thread_are_kept_in_memory() {
    let home = Home::new();
    let received = Arc::default();
    let stored = Arc::new(AtomicBool::new(false));
    let is_stored = Arc::clone(&stored);
    let is_stored = Box::new(move || is_stored.load(Ordering::Relaxed));
    let events = log(&received, &[1]).with_approvals(KeptApprovals::new(home.id, home.work.clone(), is_stored));
    let mut open = events.request(patch("i", 1)).await;
    let query = loomd_store::ApprovalQuery { thread_id: None, open: Some(true), before: None, limit: 10 };
    assert_eq!(events.kept.unstored(&query).len(), 1);
    // A thread that is stored meanwhile settles it where it was asked.
    stored.store(true, Ordering::Relaxed);
    let _stored = events.approvals()[0].decide(accept(), decider("1")).unwrap();
    let decided = open.decision().await;
    assert_eq!(resolved(open, decided).await.decision, Some(accept()));
    assert_eq!(events.kept.unstored(&query).len(), 0);
    let ended = events.kept.unstored(&loomd_store::ApprovalQuery { open: Some(false), ..query });
    assert_eq!(ended[0].outcome.as_ref().unwrap().end, ApprovalEnd::Decided);
    assert!(home.stored().await.is_empty());
}

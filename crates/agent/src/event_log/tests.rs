use std::collections::BTreeMap;

use loomd_protocol::{
    AgentMessageDeltaNotification, ItemCompletedNotification, ItemStartedNotification, ThreadStatus,
    ThreadStatusChangedNotification, ToolRequestUserInputParams, ToolRequestUserInputResponse, Turn, TurnStatus,
};
use proptest::prelude::*;

use super::testing::{Received, log};
use super::*;
use crate::approval::{ApprovalDecision, ApprovalParams};
use crate::event::{MissedEvents, next_epoch};

const TURN: &str = "turn";

fn message(text: &str) -> ThreadItem {
    ThreadItem::AgentMessage { id: "message".into(), text: text.into(), phase: None, memory_citation: None }
}

fn started(item: ThreadItem) -> ServerNotification {
    let (thread_id, turn_id) = ("t".into(), TURN.into());
    ServerNotification::ItemStarted(ItemStartedNotification { item, thread_id, turn_id, started_at_ms: 0 })
}

fn completed(item: ThreadItem) -> ServerNotification {
    let (thread_id, turn_id) = ("t".into(), TURN.into());
    ServerNotification::ItemCompleted(ItemCompletedNotification {
        item,
        thread_id,
        turn_id,
        completed_at_ms: 0,
        started_at_ms: None,
    })
}

fn delta(text: &str) -> ServerNotification {
    let (thread_id, turn_id, item_id) = ("t".into(), TURN.into(), "message".into());
    ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
        thread_id,
        turn_id,
        item_id,
        delta: text.into(),
    })
}

fn status() -> ServerNotification {
    ServerNotification::ThreadStatusChanged(ThreadStatusChangedNotification {
        thread_id: "t".into(),
        status: ThreadStatus::Idle,
    })
}

fn question() -> ToolRequestUserInputParams {
    let (thread_id, turn_id, item_id) = ("t".into(), TURN.into(), "call".into());
    ToolRequestUserInputParams { thread_id, turn_id, item_id, questions: Vec::new(), is_blocking: true }
}

fn no_answers() -> ApprovalDecision {
    ApprovalDecision::UserInput(ToolRequestUserInputResponse { answers: BTreeMap::new() })
}

/// The ids that a subscriber got, in order.
fn ids(received: &Received, subscriber: u64) -> Vec<EventId> {
    received.events().into_iter().filter(|(to, _)| *to == subscriber).map(|(_, event)| event.id).collect()
}

fn text_of(items: &[ThreadItem]) -> String {
    items.iter().map(|item| if let ThreadItem::AgentMessage { text, .. } = item { text.as_str() } else { "" }).collect()
}

/// A step of a client while deltas are published.
#[derive(Clone, Debug)]
enum Step {
    Join { reads: usize },
    Leave,
    Wait(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0usize..6).prop_map(|reads| Step::Join { reads }),
        Just(Step::Leave),
        (0usize..6).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..12)
}

/// The text of a client's last snapshot, and the number of events that it had received before.
struct Joined {
    snapshot: String,
    received: usize,
}

proptest! {
    /// Clients join, join again and leave at random points while two publishers run. With every schedule, the snapshot
    /// and the events after it give the whole text.
    #[test]
    fn a_client_that_joins_at_any_moment_misses_no_event_and_gets_none_twice(
        clients in prop::collection::vec(steps(), 1..4),
        broadcasts in 0usize..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let everyone = (1..=clients.len() as u64).collect();
        let received = Arc::new(Received { everyone, ..Received::default() });
        let events = Arc::new(log(&received, &[0]));
        let views = runtime.block_on(async {
            events.publish(started(message(""))).await;
            let publisher = {
                let events = Arc::clone(&events);
                tokio::spawn(async move {
                    for number in 0..60 {
                        events.publish(delta(&format!("{number} "))).await;
                    }
                })
            };
            let broadcaster = {
                let events = Arc::clone(&events);
                tokio::spawn(async move {
                    for _ in 0..broadcasts {
                        events.broadcast(status()).await;
                    }
                })
            };
            let mut tasks = Vec::new();
            for (index, steps) in clients.iter().cloned().enumerate() {
                let (events, received) = (Arc::clone(&events), Arc::clone(&received));
                tasks.push(tokio::spawn(act(events, received, index as u64 + 1, steps)));
            }
            publisher.await.unwrap();
            broadcaster.await.unwrap();
            let mut views = Vec::new();
            for task in tasks {
                views.push(task.await.unwrap());
            }
            views
        });
        let whole = text_of(&events.open_items(TURN));
        for (index, joined) in views.into_iter().enumerate() {
            let Some(Joined { snapshot, received: before }) = joined else { continue };
            let subscriber = index as u64 + 1;
            let all = received.events();
            let later = all.iter().filter(|(to, _)| *to == subscriber).skip(before);
            let mut text = snapshot;
            for (_, event) in later {
                if let EventKind::Notification(notification) = &event.kind
                    && let ServerNotification::AgentMessageDelta(delta) = &**notification
                {
                    text += &delta.delta;
                }
            }
            prop_assert_eq!(text, whole.clone());
        }
        for subscriber in 0..=clients.len() as u64 {
            let ids = ids(&received, subscriber);
            prop_assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        }
        prop_assert_eq!(events.tail.load(Ordering::Relaxed), 0);
    }
}

/// Carries out the steps of a client. Returns its last snapshot if it is subscribed at the end.
async fn act(events: Arc<EventLog>, received: Arc<Received>, id: u64, steps: Vec<Step>) -> Option<Joined> {
    let mut joined = None;
    for step in steps {
        match step {
            Step::Join { reads } => {
                let (join, ()) = events.join(Subscriber(id), Some(TURN), None, || ()).await;
                for _ in 0..reads {
                    tokio::task::yield_now().await;
                }
                let join = join.hold().await;
                let mut turn = Turn {
                    id: TURN.into(),
                    items: Vec::new(),
                    status: TurnStatus::InProgress,
                    error: None,
                    ..Default::default()
                };
                join.show(&mut turn);
                joined = Some(Joined { snapshot: text_of(&turn.items), received: ids(&received, id).len() });
                join.subscribe().await;
            }
            Step::Leave => {
                events.unsubscribe(Subscriber(id)).await;
                joined = None;
            }
            Step::Wait(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    joined
}

#[tokio::test]
async fn an_item_that_is_written_before_its_event_is_shown_as_it_was_when_the_join_began() {
    let received = Arc::new(Received::default());
    let events = log(&received, &[]);
    events.publish(started(message("so "))).await;
    let (join, ()) = events.join(Subscriber(1), Some(TURN), None, || ()).await;
    let later = ThreadItem::Plan { id: "later".into(), text: String::new() };
    events.publish(delta("far")).await;
    events.publish(completed(message("so far"))).await;
    events.publish(started(later.clone())).await;
    // The rollout is ahead of the events.
    let first = ThreadItem::Plan { id: "first".into(), text: "done".into() };
    let items = vec![first.clone(), message("so far"), later];
    let mut turn = Turn { id: TURN.into(), items, status: TurnStatus::InProgress, ..Turn::default() };
    let join = join.hold().await;
    join.show(&mut turn);
    assert_eq!(turn.items, [first, message("so ")]);
    join.subscribe().await;
    let methods: Vec<_> = received.notifications().into_iter().map(|(_, event)| event["method"].clone()).collect();
    assert_eq!(methods, ["item/agentMessage/delta", "item/completed", "item/started"]);
}

#[tokio::test]
async fn the_markers_of_a_review_share_an_id_and_are_two_items() {
    let events = log(&Arc::default(), &[]);
    let entered = ThreadItem::EnteredReviewMode { id: "review".into(), review: String::new() };
    let (join, ()) = events.join(Subscriber(1), Some(TURN), None, || ()).await;
    events.publish(started(ThreadItem::ExitedReviewMode { id: "review".into(), review: String::new() })).await;
    let items = vec![entered.clone()];
    let mut turn = Turn { id: TURN.into(), items, status: TurnStatus::InProgress, ..Turn::default() };
    join.hold().await.show(&mut turn);
    assert_eq!(turn.items, [entered]);
}

#[tokio::test]
async fn a_refused_join_keeps_an_earlier_subscription_and_makes_no_new_one() {
    let received = Arc::new(Received::default());
    let events = log(&received, &[1]);
    for subscriber in [1, 2] {
        let (join, ()) = events.join(Subscriber(subscriber), None, None, || ()).await;
        events.publish(delta("meanwhile")).await;
        join.hold().await.refuse().await;
    }
    // Dropped as when its task fails.
    drop(events.join(Subscriber(1), None, None, || ()).await);
    events.publish(delta("later")).await;
    assert_eq!(ids(&received, 1).len(), 3);
    assert_eq!(ids(&received, 2).len(), 0);
}

#[tokio::test]
async fn publishers_wait_while_too_much_waits_for_a_client_that_joins() {
    let received = Arc::new(Received::default());
    let events = log(&received, &[]);
    let (join, ()) = events.join(Subscriber(1), None, None, || ()).await;
    let large = "x".repeat(MAX_TAIL / 4);
    let publish = async {
        for _ in 0..20 {
            events.publish(delta(&large)).await;
        }
    };
    let joined = async {
        while events.tail.load(Ordering::Relaxed) <= MAX_TAIL {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(events.tail.load(Ordering::Relaxed) < 2 * MAX_TAIL);
        join.hold().await.subscribe().await;
    };
    tokio::join!(publish, joined);
    assert_eq!(ids(&received, 1).len(), 20);
}

#[tokio::test]
async fn recent_events_can_be_read_again_until_the_bound_drops_them() {
    let received = Arc::new(Received::default());
    let budget = Arc::new(EventBudget::new(20_000, 1_000_000));
    let events =
        EventLog::new(Arc::clone(&received) as Arc<dyn EventSink>, vec![Subscriber(1)], 7, Arc::clone(&budget));
    let before = EventId::before(7);
    events.publish(delta("a")).await;
    events.broadcast(status()).await;
    events.publish(delta("b")).await;
    let all = events.after(before).unwrap();
    assert_eq!(
        all.iter().map(|event| event.id).collect::<Vec<_>>(),
        [before.next(), before.next().next(), before.next().next().next()]
    );
    assert_eq!(events.after(all[1].id).unwrap().len(), 1);
    assert_eq!(events.after(all[2].id).unwrap().len(), 0);
    assert!(events.after(all[2].id.next()).is_none(), "an id that has not been given");
    assert!(events.after(EventId::before(6)).is_none(), "an id of an earlier load");
    for _ in 0..200 {
        events.publish(delta(&"x".repeat(500))).await;
        assert!(budget.used() <= 20_000);
    }
    assert!(events.after(before).is_none());
    let last = *ids(&received, 1).last().unwrap();
    assert!(events.after(last).is_some_and(|after| after.is_empty()));
    let horizon = events.state.lock().recent.horizon();
    let kept = events.after(horizon).unwrap();
    assert!(kept.len() > 5 && kept.last().is_some_and(|event| event.id == last));
    events.forget_recent();
    assert_eq!(budget.used(), 0);
    assert!(events.after(last).is_some());
}

#[tokio::test]
async fn a_thousand_streaming_threads_keep_no_more_than_the_bound_for_all() {
    let budget = Arc::new(EventBudget::new(20_000, 300_000));
    let received: Arc<Received> = Arc::default();
    let log =
        || EventLog::new(Arc::clone(&received) as Arc<dyn EventSink>, Vec::new(), next_epoch(), Arc::clone(&budget));
    let logs: Vec<EventLog> = (0..1000).map(|_| log()).collect();
    for _ in 0..20 {
        for log in &logs {
            log.publish(delta(&"x".repeat(200))).await;
            assert!(budget.used() <= 300_000);
        }
    }
    assert!(budget.used() > 200_000);
    drop(logs);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn an_event_counts_for_the_text_that_it_carries() {
    let long = "x".repeat(100_000);
    let user = loomd_protocol::UserInput::Text { text: long.clone(), text_elements: Vec::new() };
    let arguments = serde_json::json!({ "text": long });
    let status = loomd_protocol::DynamicToolCallStatus::InProgress;
    let items = [
        message(&long),
        ThreadItem::Reasoning { id: "r".into(), summary: vec![long.clone()], content: Vec::new() },
        ThreadItem::UserMessage { id: "u".into(), content: vec![user], client_id: None },
        ThreadItem::DynamicToolCall {
            id: "d".into(),
            namespace: None,
            tool: "t".into(),
            arguments,
            status,
            content_items: None,
            success: None,
            duration_ms: None,
        },
    ];
    let texts = [delta(&long)].into_iter().chain(items.into_iter().map(started));
    for notification in texts {
        let json = notification.encode().unwrap().len();
        let size = size::of(&EventKind::Notification(Arc::new(notification)));
        assert!((json..json + 4096).contains(&size), "{size} for {json}");
    }
    assert!(size::of(&EventKind::Notification(Arc::new(delta("word")))) < 1100, "see PER_THREAD");
}

#[tokio::test]
async fn a_client_that_joins_gets_the_open_approvals_with_the_ids_that_they_had() {
    let received = Arc::new(Received::default());
    let events = log(&received, &[1]);
    let open = events.request(question().into_request()).await;
    let gone = events.request(question().into_request()).await;
    let (join, ()) = events.join(Subscriber(2), None, None, || ()).await;
    drop(gone);
    let later = events.request(question().into_request()).await;
    join.hold().await.subscribe().await;
    let first = ids(&received, 1);
    assert_eq!(ids(&received, 2), [first[0], first[2]]);
    assert_eq!(events.approvals().len(), 2);
    drop((open, later));
    assert!(events.approvals().is_empty());
}

/// Joins with the last event that the client has.
async fn rejoin(events: &EventLog, subscriber: u64, after: EventId) -> Option<MissedEvents> {
    let (join, ()) = events.join(Subscriber(subscriber), None, Some(after), || ()).await;
    let join = join.hold().await;
    let missed = join.missed();
    join.subscribe().await;
    missed
}

#[tokio::test]
async fn a_client_that_comes_back_gets_the_events_it_missed_and_then_the_live_ones() {
    let received = Arc::default();
    let events = log(&received, &[1]);
    events.publish(status()).await;
    let last = ids(&received, 1)[0];
    events.unsubscribe(Subscriber(1)).await;
    events.publish(started(message(""))).await;
    events.publish(delta("a")).await;
    assert_eq!(rejoin(&events, 1, last).await, Some(MissedEvents::Follow));
    events.publish(delta("b")).await;
    let got = ids(&received, 1);
    assert_eq!(got.len(), 4);
    assert!(got.is_sorted_by(|one, next| one < next), "{got:?}");
}

#[tokio::test]
async fn events_that_name_no_thread_are_not_sent_again() {
    let received = Arc::default();
    let events = log(&received, &[1]);
    events.publish(status()).await;
    let last = ids(&received, 1)[0];
    events.unsubscribe(Subscriber(1)).await;
    let notice = loomd_protocol::DeprecationNoticeNotification { summary: "old".into(), details: None };
    events.publish(ServerNotification::DeprecationNotice(notice)).await;
    events.publish(status()).await;
    assert_eq!(rejoin(&events, 1, last).await, Some(MissedEvents::Follow));
    assert_eq!(ids(&received, 1).len(), 2);
}

#[tokio::test]
async fn a_client_that_comes_back_too_late_is_told_so() {
    let received = Arc::default();
    let events = log(&received, &[1]);
    events.publish(status()).await;
    let last = ids(&received, 1)[0];
    events.publish(delta(&"x".repeat(1024 * 1024))).await;
    let told = |reason| Some(MissedEvents::Unknown(reason));
    assert_eq!(rejoin(&events, 2, last).await, told(ThreadReplayReason::TooOld));
    assert_eq!(rejoin(&events, 2, EventId::before(0)).await, told(ThreadReplayReason::NotLoaded));
    let later = EventId::before(u64::MAX);
    assert_eq!(rejoin(&events, 2, later).await, told(ThreadReplayReason::UnknownEvent));
    assert_eq!(ids(&received, 2), [] as [EventId; 0]);
    events.publish(status()).await;
    assert_eq!(ids(&received, 2).len(), 1);
}

#[tokio::test]
async fn an_open_approval_is_sent_once_to_a_client_that_comes_back_whether_it_had_it_or_not() {
    let received = Arc::default();
    let events = log(&received, &[1]);
    events.publish(status()).await;
    let before = ids(&received, 1)[0];
    let mut open = events.request(question().into_request()).await;
    let asked = ids(&received, 1)[1];
    events.publish(status()).await;
    for (subscriber, after) in [(2, before), (3, asked)] {
        assert_eq!(rejoin(&events, subscriber, after).await, Some(MissedEvents::Follow));
        let got = ids(&received, subscriber);
        assert_eq!(got.len(), 2, "{got:?}");
        assert_eq!(got[0], asked);
    }
    let approval = &events.approvals()[0];
    let _stored = approval.decide(no_answers(), approval_tests::decider("1")).unwrap();
    let decided = open.decision().await;
    open.settle(decided).await;
    open.resolve().await;
    // Settled meanwhile: what was missed has the request and its end.
    assert_eq!(rejoin(&events, 4, before).await, Some(MissedEvents::Follow));
    assert_eq!(ids(&received, 4).len(), 3);
}

#[tokio::test]
async fn ids_follow_the_lease_when_it_is_ahead_of_the_clock_and_events_of_earlier_holders_are_not_taken_for_known() {
    let received = Arc::default();
    let events = log(&received, &[1]);
    events.publish(status()).await;
    let first = ids(&received, 1)[0];
    events.follow_lease(5);
    events.publish(status()).await;
    assert_eq!(ids(&received, 1)[1], first.next(), "an older lease changes nothing");
    let lease = u64::try_from(jiff::Timestamp::now().as_second()).unwrap() + 1000;
    events.follow_lease(lease);
    events.publish(status()).await;
    assert_eq!(ids(&received, 1)[2], EventId::before_lease(lease).next());
    let of_earlier_holder = EventId::before_lease(lease - 1).next();
    assert!(first < of_earlier_holder && of_earlier_holder < EventId::before_lease(lease));
    for unknown in [first, of_earlier_holder] {
        assert!(events.after(unknown).is_none());
        assert_eq!(rejoin(&events, 2, unknown).await, Some(MissedEvents::Unknown(ThreadReplayReason::NotLoaded)));
    }
    assert_eq!(events.after(EventId::before_lease(lease)).map(|events| events.len()), Some(1));
    events.follow_lease(u64::MAX);
    events.publish(status()).await;
    events.publish(status()).await;
    assert!(ids(&received, 1).is_sorted_by(|one, next| one < next));
}

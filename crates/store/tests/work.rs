//! Goals and queues: what survives, in which order, and what two processes on one home see of each other.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use loomd_protocol::{ThreadGoalStatus, UserInput};
use loomd_store::{Enqueued, FileStore, Goal, Options, QueuedMessage, Store, ThreadId, WorkStore};
use uuid::Uuid;

fn store(home: &tempfile::TempDir) -> FileStore {
    FileStore::new(Options { home: home.path().to_path_buf(), sqlite_home: None })
}

fn input(text: &str) -> Vec<UserInput> {
    vec![UserInput::Text { text: text.into(), text_elements: Vec::new() }]
}

async fn add(work: &WorkStore, id: ThreadId, text: &str) -> QueuedMessage {
    match work.enqueue(id, format!("client-{text}"), input(text)).await.unwrap() {
        Enqueued::Added(message) => message,
        other => panic!("{other:?}"),
    }
}

async fn texts(work: &WorkStore, id: ThreadId) -> Vec<String> {
    let page = work.queue_page(id, 0, 100).await.unwrap();
    page.messages.iter().map(|message| message.client_id.replace("client-", "")).collect()
}

fn goal(objective: &str) -> Goal {
    Goal {
        id: Uuid::now_v7(),
        objective: objective.into(),
        status: ThreadGoalStatus::UsageLimited,
        token_budget: Some(7),
        tokens_used: 3,
        time_used_ms: 1999,
        created_at_ms: 1_000,
        updated_at_ms: 2_000,
        stalled: None,
        wrapped_up: true,
        turns: 4,
        idle_turns: 2,
    }
}

#[tokio::test]
async fn nothing_is_created_before_something_is_stored() {
    let home = tempfile::tempdir().unwrap();
    let (store, id) = (store(&home), ThreadId::new());
    assert_eq!(store.work().goal(id).await.unwrap(), None);
    assert!(!store.work().has_queued(id).await.unwrap());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_goal_is_read_as_it_was_stored_by_another_process() {
    let home = tempfile::tempdir().unwrap();
    let (id, wanted) = (ThreadId::new(), goal("ship it"));
    let (one, two) = (store(&home), store(&home));
    let stored = wanted.clone();
    one.work().change_goal(id, move |goal| *goal = Some(stored)).await.unwrap();
    assert_eq!(two.work().goal(id).await.unwrap(), Some(wanted));
    two.work().change_goal(id, |goal| goal.as_mut().unwrap().tokens_used += 10).await.unwrap();
    one.work().change_goal(id, |goal| goal.as_mut().unwrap().tokens_used += 10).await.unwrap();
    assert_eq!(two.work().goal(id).await.unwrap().unwrap().tokens_used, 23);
    one.work().change_goal(id, |goal| *goal = None).await.unwrap();
    assert_eq!(two.work().goal(id).await.unwrap(), None);
}

#[tokio::test]
async fn messages_wait_in_the_order_in_which_they_came_or_were_put() {
    let (work, id) = (WorkStore::default(), ThreadId::new());
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.push(add(&work, id, text).await.id);
    }
    add(&work, ThreadId::new(), "of another thread").await;
    assert_eq!(texts(&work, id).await, ["a", "b", "c"]);
    let order = vec![ids[2].clone(), ids[0].clone(), ids[1].clone()];
    assert!(work.reorder_queue(id, order).await.unwrap());
    assert_eq!(texts(&work, id).await, ["c", "a", "b"]);
    for wrong in [vec![], vec![ids[0].clone()], vec![ids[0].clone(), ids[0].clone(), ids[1].clone()]] {
        assert!(!work.reorder_queue(id, wrong).await.unwrap());
    }
    assert_eq!(texts(&work, id).await, ["c", "a", "b"]);
    let page = work.queue_page(id, 1, 1).await.unwrap();
    assert_eq!((page.messages[0].client_id.as_str(), page.more), ("client-a", true));
    assert!(work.delete_queued(id, ids[0].clone()).await.unwrap());
    assert!(!work.delete_queued(id, ids[0].clone()).await.unwrap());
    assert_eq!(work.update_queued(id, ids[0].clone(), input("x")).await.unwrap(), None);
    let changed = work.update_queued(id, ids[2].clone(), input("c2")).await.unwrap().unwrap();
    assert_eq!((changed.id, changed.client_id.as_str(), changed.input), (ids[2].clone(), "client-c", input("c2")));
    assert_eq!(texts(&work, id).await, ["c", "b"]);
}

#[tokio::test]
async fn a_message_that_is_sent_again_is_not_queued_twice() {
    let (work, id) = (WorkStore::default(), ThreadId::new());
    let first = add(&work, id, "a").await;
    let again = work.enqueue(id, "client-a".into(), input("a")).await.unwrap();
    assert_eq!(again, Enqueued::Present(first));
    let other = work.enqueue(id, "client-a".into(), input("something else")).await.unwrap();
    assert!(matches!(other, Enqueued::Added(_)));
    work.claim(id, None, "turn-1".into()).await.unwrap().unwrap();
    let started = Enqueued::Started { turn_id: "turn-1".into() };
    assert_eq!(work.enqueue(id, "client-a".into(), input("a")).await.unwrap(), started);
    work.settle_claim(id, "turn-1".into()).await.unwrap();
    assert_eq!(work.enqueue(id, "client-a".into(), input("a")).await.unwrap(), started);
}

#[tokio::test]
async fn a_claimed_message_is_out_of_the_queue_and_comes_back_where_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (one, two, id) = (store(&home), store(&home), ThreadId::new());
    add(one.work(), id, "a").await;
    let second = add(one.work(), id, "b").await;
    let claimed = one.work().claim(id, None, "turn-1".into()).await.unwrap().unwrap();
    assert_eq!(claimed.client_id, "client-a");
    assert_eq!(texts(two.work(), id).await, ["b"]);
    // As after the death of the first process.
    let claims = two.work().claims(id).await.unwrap();
    assert_eq!((claims.len(), claims[0].turn_id.as_str()), (1, "turn-1"));
    two.work().release_claim(id, "turn-1".into()).await.unwrap();
    assert_eq!(texts(one.work(), id).await, ["a", "b"]);
    let chosen = two.work().claim(id, Some(second.id), "turn-2".into()).await.unwrap().unwrap();
    assert_eq!(chosen.client_id, "client-b");
    two.work().settle_claim(id, "turn-2".into()).await.unwrap();
    assert_eq!(texts(one.work(), id).await, ["a"]);
    assert_eq!(one.work().claim(id, Some("unknown".into()), "turn-3".into()).await.unwrap(), None);
}

#[tokio::test]
async fn a_deleted_thread_leaves_neither_goal_nor_queue() {
    let (work, id) = (WorkStore::default(), ThreadId::new());
    add(&work, id, "a").await;
    work.change_goal(id, |stored| *stored = Some(goal("x"))).await.unwrap();
    work.forget(id).await.unwrap();
    assert_eq!((work.goal(id).await.unwrap(), work.has_queued(id).await.unwrap()), (None, false));
}

#[tokio::test]
async fn a_database_of_another_release_is_refused_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("loomd-work.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = store(&home).work().goal(ThreadId::new()).await.unwrap_err();
    assert!(error.to_string().ends_with("the database belongs to another release"), "{error}");
    assert!(path.exists());
}

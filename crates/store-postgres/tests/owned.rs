//! Nodes that own threads: sessions, take-over, fencing of records and notes.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod support;

use std::time::Duration;

use loomd_store::{
    Durability, EarlierRequest, Error, NodeFacts, Position, Reader, RequestKey, Result, Store, Taking, ThreadId,
    TurnNotes,
};
use support::{Database, Node, user};
use tokio_postgres::NoTls;
use uuid::Uuid;

const FLUSHED: Durability = Durability::Flushed;

async fn nodes(database: &Database) -> (Node, Node) {
    (Node::new(database.options()).await, Node::new(database.options()).await)
}

fn notes(node: &Node) -> &dyn TurnNotes {
    node.store.turn_notes().unwrap()
}

async fn records(reader: &dyn Reader) -> usize {
    reader.records_after(Position::START, usize::MAX).await.unwrap().lines().count()
}

/// Lets the session of a node expire.
fn expire(database: &Database, node: &Node) {
    let expire = "UPDATE loomd.node SET expires_at = clock_timestamp() - interval '1 second' WHERE session";
    database.sql(&format!("{expire} = '{}'", node.session));
}

fn is_stale<T>(result: Result<T>, thread: ThreadId) -> bool {
    result.err() == Some(Error::StaleLease { id: thread })
}

#[tokio::test]
async fn an_owned_thread_stays_with_its_node_between_its_writers() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let id = ThreadId::new();
    let epoch = ours.take(id).await;
    let reader = ours.store.create(id, jiff::Timestamp::UNIX_EPOCH);
    for number in 0..3 {
        let mut writer = reader.writer().await.unwrap();
        assert_eq!(writer.epoch(), epoch);
        writer.renew().await.unwrap();
        let second = reader.writer().await.err().unwrap();
        assert!(matches!(second, Error::Held { pid: Some(_), .. }), "{second}");
        let lines = if number == 0 { support::lines(id, "hello").into_bytes() } else { b"{}\n".to_vec() };
        writer.append(loomd_store::Batch::of_lines(lines), FLUSHED).await.unwrap();
    }
    assert_eq!(theirs.shared().take(id, theirs.session).await.unwrap(), Taking::Held { session: ours.session });
    assert_eq!(theirs.shared().owner(id).await.unwrap(), Some(ours.session));
    let other = theirs.store.open(id).await.unwrap();
    assert!(matches!(other.writer().await.err(), Some(Error::Held { .. })));
    let rows = theirs.shared().nodes().await.unwrap();
    let row = rows.iter().find(|row| row.session == ours.session).unwrap();
    assert_eq!((row.threads, row.draining), (1, false));

    let held = reader.writer().await.unwrap();
    ours.shared().release(id, ours.session, epoch).await.unwrap();
    assert!(is_stale(held.renew().await, id));
    drop(held);
    assert!(is_stale(reader.writer().await.map(drop), id), "the reader was of the ownership");
    assert_eq!(theirs.shared().owner(id).await.unwrap(), None);
    assert!(theirs.take(id).await > epoch);
    other.writer().await.unwrap().append(user("theirs"), FLUSHED).await.unwrap();
    assert_eq!(records(&*reader).await, 5);
}

#[tokio::test]
async fn a_thread_of_an_expired_session_is_taken_over_and_its_owner_writes_neither_records_nor_notes() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (id, reader) = ours.start_thread().await;
    notes(&ours).replace(id, b"started\n".to_vec()).await.unwrap();
    let mut writer = reader.writer().await.unwrap();
    expire(&database, &ours);
    assert_eq!(theirs.shared().abandoned().await.unwrap(), [id]);
    assert!(theirs.take(id).await > writer.epoch());
    assert!(theirs.shared().abandoned().await.unwrap().is_empty());
    assert_eq!(notes(&theirs).read(id).await.unwrap(), b"started\n");
    notes(&theirs).replace(id, b"taken over\n".to_vec()).await.unwrap();

    assert!(is_stale(writer.append(user("late"), FLUSHED).await, id));
    assert!(is_stale(notes(&ours).add(id, b"late\n".to_vec()).await, id));
    assert!(is_stale(notes(&ours).replace(id, b"late\n".to_vec()).await, id));
    assert!(is_stale(notes(&ours).remove(id).await, id));
    assert!(is_stale(writer.renew().await, id));
    drop(writer);
    assert!(is_stale(reader.writer().await.map(drop), id));
    assert_eq!((records(&*reader).await, notes(&ours).read(id).await.unwrap()), (2, b"taken over\n".to_vec()));

    assert!(!ours.shared().renew(ours.session).await.unwrap(), "an expired session never lives again");
    let dead = Uuid::now_v7();
    assert_eq!(ours.shared().take(ThreadId::new(), dead).await.unwrap(), Taking::NoSession);
    let again = ours.shared().register(ours.session, NodeFacts::default()).await;
    assert!(again.unwrap_err().to_string().contains("has expired"));
}

#[tokio::test]
async fn notes_alone_are_refused_when_the_thread_was_taken_over() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (id, _) = ours.start_thread().await;
    expire(&database, &ours);
    theirs.take(id).await;
    assert!(is_stale(notes(&ours).replace(id, b"late\n".to_vec()).await, id));
    assert!(notes(&theirs).threads().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_whose_renewal_is_on_its_way_is_not_taken_from() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (id, _) = ours.start_thread().await;
    expire(&database, &ours);
    // The renewal was in time, and is committed late.
    let (client, connection) = tokio_postgres::connect(&database.server.url(&database.name), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("BEGIN; UPDATE loomd.node SET expires_at = clock_timestamp() + interval '1 hour'")
        .await
        .unwrap();
    let (watcher, connection) = tokio_postgres::connect(&database.server.url(&database.name), NoTls).await.unwrap();
    tokio::spawn(connection);
    let commits = async {
        let waiting = "SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1";
        while watcher.query_opt(waiting, &[]).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        client.batch_execute("COMMIT").await.unwrap();
    };
    let (taking, ()) = tokio::join!(theirs.shared().take(id, theirs.session), commits);
    assert_eq!(taking.unwrap(), Taking::Held { session: ours.session });
}

#[tokio::test]
async fn of_many_nodes_that_take_a_thread_at_once_one_gets_it() {
    let Some(database) = Database::new() else { return };
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(Node::new(database.options()).await);
    }
    for _ in 0..5 {
        let id = ThreadId::new();
        let takes = all.iter().map(|node| node.shared().take(id, node.session));
        let taken = futures_util::future::join_all(takes).await;
        let winners: Vec<usize> =
            (0..all.len()).filter(|number| matches!(taken[*number].as_ref().unwrap(), Taking::Taken { .. })).collect();
        assert_eq!(winners.len(), 1, "{taken:?}");
        let session = all[winners[0]].session;
        let held = taken.iter().filter(|taking| **taking == Ok(Taking::Held { session })).count();
        assert_eq!(held, all.len() - 1, "{taken:?}");
    }
}

#[tokio::test]
async fn a_node_that_abandons_a_thread_writes_nothing_more_until_it_takes_it_again() {
    let Some(database) = Database::new() else { return };
    let ours = Node::new(database.options()).await;
    let (id, reader) = ours.start_thread().await;
    let mut writer = reader.writer().await.unwrap();
    ours.shared().abandon(id);
    assert!(is_stale(writer.append(user("late"), FLUSHED).await, id));
    assert!(is_stale(notes(&ours).replace(id, b"late\n".to_vec()).await, id));
    drop(writer);
    let opened = ours.store.open(id).await.unwrap();
    assert!(is_stale(opened.writer().await.map(drop), id));

    let session = Uuid::now_v7();
    ours.shared().register(session, NodeFacts::default()).await.unwrap();
    expire(&database, &ours);
    assert!(matches!(ours.shared().take(id, session).await.unwrap(), Taking::Taken { .. }));
    let opened = ours.store.open(id).await.unwrap();
    opened.writer().await.unwrap().append(user("again"), FLUSHED).await.unwrap();
    assert!(is_stale(reader.writer().await.map(drop), id), "what the first ownership left behind stays out");
    assert_eq!(records(&*reader).await, 3);
}

#[tokio::test]
async fn a_session_may_take_its_thread_again_and_only_the_later_epoch_counts() {
    let Some(database) = Database::new() else { return };
    let ours = Node::new(database.options()).await;
    let (id, reader) = ours.start_thread().await;
    let mut first = reader.writer().await.unwrap();
    let epoch = ours.take(id).await;
    assert!(epoch > first.epoch());
    assert!(is_stale(first.append(user("late"), FLUSHED).await, id));
    let mut second = reader.writer().await.unwrap();
    assert_eq!(second.epoch(), epoch);
    second.append(user("on time"), FLUSHED).await.unwrap();
    assert_eq!(database.sql("SELECT count(*), max(epoch) FROM loomd.event"), format!("3|{epoch}"));
}

#[tokio::test]
async fn ending_a_session_frees_its_threads_at_once() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (id, reader) = ours.start_thread().await;
    let mut writer = reader.writer().await.unwrap();
    ours.shared().drain(ours.session).await.unwrap();
    assert!(theirs.shared().nodes().await.unwrap()[0].draining);
    ours.shared().end(ours.session).await.unwrap();
    assert!(is_stale(writer.append(user("late"), FLUSHED).await, id));
    assert_eq!(theirs.shared().owner(id).await.unwrap(), None);
    theirs.take(id).await;
    assert_eq!(theirs.shared().nodes().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_owned_thread_is_archived_and_deleted_under_its_ownership() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (id, reader) = ours.start_thread().await;
    assert!(matches!(theirs.store.archive(id).await, Err(Error::Held { .. })));
    let writer = reader.writer().await.unwrap();
    assert!(matches!(ours.store.archive(id).await, Err(Error::Held { pid: Some(_), .. })));
    drop(writer);
    ours.store.archive(id).await.unwrap();
    assert_eq!(ours.shared().owner(id).await.unwrap(), Some(ours.session), "it is still owned");
    reader.writer().await.unwrap().append(user("more"), FLUSHED).await.unwrap();
    notes(&ours).replace(id, b"note\n".to_vec()).await.unwrap();
    ours.store.delete(id).await.unwrap();
    assert!(notes(&ours).threads().await.unwrap().is_empty() && notes(&ours).read(id).await.unwrap().is_empty());
    let gone = reader.writer().await.unwrap().append(user("late"), FLUSHED).await;
    assert_eq!(gone.err(), Some(Error::NotFound { id }));
}

#[tokio::test]
async fn a_writer_of_a_thread_that_its_process_does_not_own_keeps_other_nodes_out() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let id = ThreadId::new();
    let reader = ours.store.create(id, jiff::Timestamp::UNIX_EPOCH);
    let mut writer = reader.writer().await.unwrap();
    writer.append(loomd_store::Batch::of_lines(support::lines(id, "hello").into_bytes()), FLUSHED).await.unwrap();
    let taking = theirs.shared().take(id, theirs.session).await.unwrap();
    assert_eq!(taking, Taking::Held { session: ours.session }, "the registered session is used");
    assert_eq!(ours.shared().nodes().await.unwrap().len(), 2, "and no other is made");
    let dropped = async {
        tokio::task::yield_now().await;
        drop(writer);
    };
    let (epoch, ()) = tokio::join!(ours.take(id), dropped);
    assert!(epoch > 0);
    reader.writer().await.unwrap().append(user("owned"), FLUSHED).await.unwrap();
}

#[tokio::test]
async fn notes_are_replaced_added_to_and_removed() {
    let Some(database) = Database::new() else { return };
    let ours = Node::new(database.options()).await;
    let (id, _) = ours.start_thread().await;
    // A process that is no node owns nothing.
    let alone = database.store();
    for (thread, store) in [(id, &ours.store), (ThreadId::new(), &alone)] {
        let notes = store.turn_notes().unwrap();
        let missing = notes.add(thread, b"a\n".to_vec()).await.unwrap_err();
        assert!(missing.to_string().ends_with("has no notes"), "{missing}");
        notes.replace(thread, b"a\n".to_vec()).await.unwrap();
        notes.add(thread, b"b\n".to_vec()).await.unwrap();
        notes.add(thread, b"\0\xff".to_vec()).await.unwrap();
        assert_eq!(notes.read(thread).await.unwrap(), b"a\nb\n\0\xff");
        assert_eq!(notes.threads().await.unwrap(), [thread]);
        notes.replace(thread, b"c\n".to_vec()).await.unwrap();
        assert_eq!(notes.read(thread).await.unwrap(), b"c\n");
        notes.remove(thread).await.unwrap();
        notes.remove(thread).await.unwrap();
        assert!(notes.read(thread).await.unwrap().is_empty() && notes.threads().await.unwrap().is_empty());
    }
    let thread = ThreadId::new();
    let unowned = notes(&ours).replace(thread, b"a\n".to_vec()).await;
    assert_eq!(unowned, Err(Error::StaleLease { id: thread }), "a node writes only what it owns");
}

#[tokio::test]
async fn answered_requests_are_shared_between_nodes() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = nodes(&database).await;
    let (one, two) = (ours.store.work(), theirs.store.work());
    let request = |body: &[u8]| RequestKey { method: "turn/start", key: "k\0".repeat(3000), body: body.to_vec() };
    let same = |answer: &str, epoch: &str| Some(EarlierRequest::Same { answer: answer.into(), epoch: epoch.into() });
    for thread in [None, Some(ThreadId::new())] {
        assert_eq!(one.claim_answer(thread, request(b"a"), "1".into()).await.unwrap(), None);
        assert_eq!(two.claim_answer(thread, request(b"a"), "2".into()).await.unwrap(), same("1", ""));
        assert_eq!(two.claim_answer(thread, request(b"b"), "2".into()).await.unwrap(), Some(EarlierRequest::Different));
        two.note_answer(thread, request(b"a"), "3".into(), "e".into()).await.unwrap();
        assert_eq!(one.earlier_request(thread, request(b"a")).await.unwrap(), same("3", "e"));
        assert_eq!(one.earlier_request(Some(ThreadId::new()), request(b"a")).await.unwrap(), None);
        one.forget_answer(thread, request(b"a")).await.unwrap();
        assert_eq!(two.earlier_request(thread, request(b"a")).await.unwrap(), None);
    }
    one.claim_answer(None, request(b"a"), "1".into()).await.unwrap();
    database.sql("UPDATE loomd.answered SET at = at - interval '25 hours'");
    assert_eq!(two.earlier_request(None, request(b"a")).await.unwrap(), None, "it is forgotten after a day");
    assert_eq!(two.claim_answer(None, request(b"b"), "2".into()).await.unwrap(), None);
    let thread = ThreadId::new();
    one.note_answer(Some(thread), request(b"a"), "1".into(), String::new()).await.unwrap();
    one.forget(thread).await.unwrap();
    assert_eq!(two.earlier_request(Some(thread), request(b"a")).await.unwrap(), None);
}

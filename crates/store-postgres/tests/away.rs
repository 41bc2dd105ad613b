//! A database that restarts, and connections that are lost: what was acknowledged is there once, and nothing is there
//! twice.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use loomd_store::{
    ApprovalEnd, ApprovalOutcome, Batch, Durability, Error, Failure, Position, Reader, RequestKey, Settled, Store,
    StoredApproval, ThreadId, Writer,
};
use loomd_store_postgres::{Options, PostgresStore};
use loomd_testkit::Postgres;
use support::proxy::{Fault, Proxy};
use support::{Database, Node, user};
use uuid::Uuid;

const FLUSHED: Durability = Durability::Flushed;

fn options(url: &str) -> Options {
    Options { connections: 4, handover: Duration::from_secs(5), ..Options::new(url.parse().unwrap()) }
}

async fn texts(reader: &dyn Reader) -> Vec<String> {
    let window = reader.records_after(Position::START, usize::MAX).await.unwrap();
    window.lines().map(|line| String::from_utf8(line.bytes.to_vec()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_append_is_there_once_when_the_database_restarts_meanwhile() {
    let Some(server) = Postgres::private() else { return };
    let server = Arc::new(server);
    let name = server.create_database();
    let node = Node::new(options(&server.url(&name))).await;
    let mut appending = tokio::task::JoinSet::new();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for _ in 0..3 {
        let (id, reader) = node.start_thread().await;
        let (store, stopped) = (node.store.clone(), stopped.clone());
        appending.spawn(async move {
            let (mut acknowledged, mut ends) = (Vec::new(), vec![2]);
            for number in 0.. {
                let mut writer = reader.writer().await.unwrap();
                for part in 0..3 {
                    let line = format!("{{\"n\":\"{number}.{part}\"}}");
                    let appended =
                        writer.append(Batch::of_lines(format!("{line}\n").into_bytes()), FLUSHED).await.unwrap();
                    assert_eq!(appended.start.to_bits(), *ends.last().unwrap());
                    ends.push(appended.end.to_bits());
                    acknowledged.push(line);
                }
                store.turn_notes().unwrap().replace(id, format!("{number}\n").into_bytes()).await.unwrap();
                store.turn_notes().unwrap().add(id, b"more\n".to_vec()).await.unwrap();
                if *stopped.borrow() {
                    let notes = store.turn_notes().unwrap().read(id).await.unwrap();
                    assert_eq!(String::from_utf8(notes).unwrap(), format!("{number}\nmore\n"));
                    break;
                }
            }
            (reader, acknowledged)
        });
    }
    let restarts = {
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || {
            for number in 0..4 {
                if number % 2 == 0 {
                    server.stop()
                } else {
                    server.crash()
                }
                server.start();
            }
        })
    };
    restarts.await.unwrap();
    stop.send(true).unwrap();
    while let Some(done) = appending.join_next().await {
        let (reader, acknowledged) = done.unwrap();
        assert_eq!(texts(&*reader).await[2..], acknowledged);
    }
    let check = node.store.check().await.unwrap();
    assert_eq!((check.broken, check.missing_blobs), (0, 0));
}

/// A node behind a proxy, with a thread whose writer has a warm connection.
async fn behind_proxy(database: &Database) -> (Proxy, Node, Arc<dyn Reader>, Box<dyn Writer>) {
    let proxy = Proxy::new(&database.server.socket());
    let node = Node::new(options(&proxy.url(&database.name))).await;
    let (_, reader) = node.start_thread().await;
    let mut writer = reader.writer().await.unwrap();
    writer.append(user("first"), FLUSHED).await.unwrap();
    (proxy, node, reader, writer)
}

#[tokio::test]
async fn an_append_whose_answer_is_lost_is_done_once() {
    let Some(database) = Database::new() else { return };
    for fault in [Fault::Unsent, Fault::Unanswered] {
        let (proxy, _node, reader, mut writer) = behind_proxy(&database).await;
        proxy.fail_next(fault);
        let appended = writer.append(Batch::of_lines(b"\"lost\"\n\"too\"\n".to_vec()), FLUSHED).await.unwrap();
        assert!(proxy.has_failed());
        assert_eq!((appended.start.to_bits(), appended.end.to_bits()), (3, 5), "{fault:?}");
        let next = writer.append(Batch::of_lines(b"\"next\"\n".to_vec()), FLUSHED).await.unwrap();
        assert_eq!(next.start, appended.end);
        assert_eq!(texts(&*reader).await[3..], ["\"lost\"", "\"too\"", "\"next\""], "{fault:?}");
    }
}

#[tokio::test]
async fn an_append_that_reaches_the_database_after_it_was_tried_again_does_nothing() {
    let Some(database) = Database::new() else { return };
    let (proxy, _node, reader, mut writer) = behind_proxy(&database).await;
    proxy.fail_next(Fault::Late);
    writer.append(Batch::of_lines(b"\"late\"\n".to_vec()), FLUSHED).await.unwrap();
    proxy.deliver().await;
    writer.append(Batch::of_lines(b"\"next\"\n".to_vec()), FLUSHED).await.unwrap();
    assert_eq!(texts(&*reader).await[3..], ["\"late\"", "\"next\""]);
}

#[tokio::test]
async fn a_token_that_is_made_late_by_a_lost_request_does_not_end_the_next_writer() {
    let Some(database) = Database::new() else { return };
    let (proxy, node, reader, writer) = behind_proxy(&database).await;
    drop(writer);
    proxy.fail_next(Fault::Late);
    let mut writer = reader.writer().await.unwrap();
    proxy.deliver().await;
    writer.renew().await.unwrap();
    writer.append(Batch::of_lines(b"\"next\"\n".to_vec()), FLUSHED).await.unwrap();
    assert_eq!(texts(&*reader).await[3..], ["\"next\""]);
    node.store.delete(reader.id()).await.unwrap_err();
    drop(writer);
    let mut writer = reader.writer().await.unwrap();
    database.sql("DELETE FROM loomd.event; DELETE FROM loomd.thread");
    let gone = writer.append(user("late"), FLUSHED).await;
    assert_eq!(gone.err(), Some(Error::NotFound { id: reader.id() }));
}

#[tokio::test]
async fn the_first_append_of_a_new_thread_is_done_once_when_its_answer_is_lost() {
    let Some(database) = Database::new() else { return };
    for fault in [Fault::Unsent, Fault::Unanswered] {
        let (proxy, node, _reader, _writer) = behind_proxy(&database).await;
        let id = ThreadId::new();
        node.take(id).await;
        let reader = node.store.create(id, jiff::Timestamp::UNIX_EPOCH);
        let mut writer = reader.writer().await.unwrap();
        proxy.fail_next(fault);
        let lines = support::lines(id, "hello").into_bytes();
        let appended = writer.append(Batch::of_lines(lines), FLUSHED).await.unwrap();
        assert_eq!((appended.start.to_bits(), appended.end.to_bits()), (0, 2), "{fault:?}");
        assert_eq!(writer.append(user("second"), FLUSHED).await.unwrap().end.to_bits(), 3);
        assert_eq!(node.store.find(id, None).await.unwrap().preview.as_deref(), Some("hello"));
    }
}

#[tokio::test]
async fn an_append_that_was_given_up_does_not_end_the_writer_of_an_owned_thread() {
    let Some(database) = Database::new() else { return };
    let (proxy, _node, reader, mut writer) = behind_proxy(&database).await;
    proxy.fail_next(Fault::Late);
    // The proxy keeps the request; the caller gives up once it has it.
    tokio::select! {
        biased;
        () = async { while !proxy.has_failed() { tokio::task::yield_now().await } } => {}
        appended = writer.append(Batch::of_lines(b"\"given up\"\n".to_vec()), FLUSHED) => panic!("{appended:?}"),
    }
    let appended = writer.append(Batch::of_lines(b"\"next\"\n".to_vec()), FLUSHED).await.unwrap();
    proxy.deliver().await;
    assert_eq!(appended.start.to_bits(), 3);
    assert_eq!(texts(&*reader).await[3..], ["\"next\""]);
}

#[tokio::test]
async fn a_note_whose_answer_is_lost_is_written_once_and_one_that_comes_late_is_not() {
    let Some(database) = Database::new() else { return };
    let (proxy, node, reader, _writer) = behind_proxy(&database).await;
    let (notes, id) = (node.store.turn_notes().unwrap(), reader.id());
    notes.replace(id, b"a\n".to_vec()).await.unwrap();
    notes.add(id, b"b\n".to_vec()).await.unwrap();
    proxy.fail_next(Fault::Unanswered);
    notes.add(id, b"c\n".to_vec()).await.unwrap();
    assert_eq!(notes.read(id).await.unwrap(), b"a\nb\nc\n");
    proxy.fail_next(Fault::Late);
    notes.add(id, b"d\n".to_vec()).await.unwrap();
    notes.add(id, b"e\n".to_vec()).await.unwrap();
    proxy.deliver().await;
    assert_eq!(notes.read(id).await.unwrap(), b"a\nb\nc\nd\ne\n");
    proxy.fail_next(Fault::Late);
    notes.replace(id, b"f\n".to_vec()).await.unwrap();
    notes.remove(id).await.unwrap();
    proxy.deliver().await;
    assert!(notes.read(id).await.unwrap().is_empty());
}

/// Runs an operation several times, with the answer to another of its round trips lost each time.
async fn with_every_answer_lost(proxy: &Proxy, mut operation: impl AsyncFnMut()) {
    let mut lost = 0;
    loop {
        proxy.fail_after(lost, Fault::Unanswered);
        operation().await;
        if !proxy.stop_failing() {
            break;
        }
        lost += 1;
    }
    assert!(lost > 0, "nothing was lost");
}

#[tokio::test]
async fn what_may_be_repeated_is_carried_out_once_whichever_answer_is_lost() {
    let Some(database) = Database::new() else { return };
    let (proxy, node, reader, _writer) = behind_proxy(&database).await;
    let (work, thread_id) = (node.store.work(), reader.id());
    let approval = |id| StoredApproval {
        id,
        thread_id,
        turn_id: "t".into(),
        item_id: "i".into(),
        method: "m".into(),
        params: serde_json::json!({}),
        asked_at_ms: 1,
        deadline_ms: None,
        default_decision: None,
        outcome: None,
    };
    let outcome = |at_ms| ApprovalOutcome { end: ApprovalEnd::Decided, decision: Some("yes".into()), at_ms, by: None };
    let mut last = Uuid::nil();
    with_every_answer_lost(&proxy, async || {
        last = Uuid::now_v7();
        work.ask_approval(approval(last), None).await.unwrap();
    })
    .await;
    assert_eq!(work.approval(last).await.unwrap(), Some(approval(last)));
    with_every_answer_lost(&proxy, async || {
        let id = Uuid::now_v7();
        work.ask_approval(approval(id), None).await.unwrap();
        assert_eq!(work.settle_approval(id, outcome(7)).await.unwrap(), Settled::Now);
        assert_eq!(work.settle_approval(id, outcome(8)).await.unwrap(), Settled::Earlier(outcome(7)));
    })
    .await;
    let request = |number: u32| RequestKey { method: "turn/start", key: number.to_string(), body: b"a".to_vec() };
    let mut number = 0;
    with_every_answer_lost(&proxy, async || {
        number += 1;
        assert_eq!(work.claim_answer(Some(thread_id), request(number), "1".into()).await.unwrap(), None);
        assert!(work.claim_answer(Some(thread_id), request(number), "2".into()).await.unwrap().is_some());
        work.note_answer(Some(thread_id), request(number), "3".into(), String::new()).await.unwrap();
        work.forget_answer(Some(thread_id), request(number)).await.unwrap();
        assert_eq!(work.earlier_request(Some(thread_id), request(number)).await.unwrap(), None);
    })
    .await;
    with_every_answer_lost(&proxy, async || {
        let id = ThreadId::new();
        let epoch = node.take(id).await;
        assert_eq!(node.shared().owner(id).await.unwrap(), Some(node.session));
        node.shared().release(id, node.session, epoch).await.unwrap();
        assert_eq!(node.shared().owner(id).await.unwrap(), None);
        let classic = node.store.create(id, jiff::Timestamp::UNIX_EPOCH);
        drop(classic.writer().await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_tick_of_a_turn_takes_two_round_trips_at_most() {
    let Some(database) = Database::new() else { return };
    let (proxy, node, reader, writer) = behind_proxy(&database).await;
    drop(writer);
    let tick = async |reader: &dyn Reader| {
        let before = proxy.round_trips();
        let mut writer = reader.writer().await.unwrap();
        writer.append(Batch::of_lines(b"{}\n{}\n{}\n".to_vec()), FLUSHED).await.unwrap();
        let after = proxy.round_trips();
        writer.append(Batch::of_lines(b"{}\n".to_vec()), FLUSHED).await.unwrap();
        (after - before, proxy.round_trips() - after)
    };
    assert_eq!(tick(&*reader).await, (2, 1), "with a new writer, and with the same one");
    let opened = node.store.open(reader.id()).await.unwrap();
    assert_eq!(tick(&*opened).await, (2, 1), "also of a thread that was just opened");
}

#[tokio::test]
async fn a_database_that_stays_away_is_given_up() {
    let Some(server) = Postgres::private() else { return };
    let name = server.create_database();
    let node = Node::new(Options { patience: Duration::from_secs(5), ..options(&server.url(&name)) }).await;
    let (id, reader) = node.start_thread().await;
    let mut writer = reader.writer().await.unwrap();
    server.stop();
    let is_away = |error: &Error| matches!(error, Error::Storage { failure: Failure::Unreachable, reason, .. } if !reason.contains('\n'));
    let (appended, found) = tokio::join!(writer.append(user("lost"), FLUSHED), node.store.find(id, None));
    let (appended, found) = (appended.unwrap_err(), found.unwrap_err());
    assert!(is_away(&appended) && is_away(&found), "{appended}; {found}");
    let error = node.shared().renew(node.session).await.unwrap_err();
    assert!(is_away(&error), "{error}");
    // One that was never reached is not waited for.
    let error = PostgresStore::new(options(&server.url(&name))).connect().await.unwrap_err();
    assert!(is_away(&error), "{error}");
    server.start();
    writer.append(user("found"), FLUSHED).await.unwrap();
    assert_eq!(texts(&*reader).await.len(), 3);
}

#[tokio::test]
async fn a_renewal_that_is_not_answered_fails_before_the_session_has_expired() {
    let Some(database) = Database::new() else { return };
    let store = PostgresStore::new(Options { session_ttl: Duration::from_secs(3), ..database.options() });
    let (shared, session) = (store.shared().unwrap(), Uuid::now_v7());
    shared.register(session, Default::default()).await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&database.server.url(&database.name), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE loomd.node").await.unwrap();
    let error = shared.renew(session).await.unwrap_err();
    assert!(matches!(&error, Error::Storage { failure: Failure::Unreachable, .. }), "{error}");
    assert!(error.to_string().ends_with("the server does not answer"), "{error}");
}

//! What only a store that several nodes share has to do: sessions, fencing, wake-ups, blobs, errors of a server.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod support;

use std::time::Duration;

use jiff::Timestamp;
use loomd_protocol::{ThreadGoalStatus, UserInput};
use loomd_store::{
    Batch, Durability, Enqueued, Error, FileStore, Goal, ListQuery, NodeFacts, Position, QueuedMessage, Reader, Store,
    ThreadId, WorkStore,
};
use loomd_store_postgres::{Address, Options, PostgresStore, SCHEMA_VERSION, export, import};
use support::{Database, lines, many, user};
use uuid::Uuid;

async fn stored(store: &dyn Store, text: &str) -> (ThreadId, std::sync::Arc<dyn Reader>) {
    let id = ThreadId::new();
    let reader = store.create(id, Timestamp::UNIX_EPOCH);
    append(&*reader, lines(id, text).into_bytes()).await;
    (id, reader)
}

async fn append(reader: &dyn Reader, bytes: Vec<u8>) {
    let mut writer = reader.writer().await.unwrap();
    writer.append(Batch::of_lines(bytes), Durability::Flushed).await.unwrap();
}

#[tokio::test]
async fn a_lease_whose_session_has_expired_is_taken_over_and_its_holder_is_fenced_off() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = (database.store(), database.store());
    let (id, reader) = stored(&ours, "hello").await;
    let mut stale = reader.writer().await.unwrap();
    // The process is paused for longer than its session lives.
    database.sql("UPDATE loomd.node SET expires_at = clock_timestamp() - interval '1 second'");
    let other = theirs.open(id).await.unwrap();
    let mut valid = other.writer().await.unwrap();
    assert!(valid.epoch() > stale.epoch());
    let refused = stale.append(user("late"), Durability::Flushed).await;
    assert_eq!(refused.err(), Some(Error::StaleLease { id }));
    valid.append(user("on time"), Durability::Flushed).await.unwrap();
    drop((stale, valid));
    // The dead session is not used again.
    let mut again = reader.writer().await.unwrap();
    again.append(user("back"), Durability::Flushed).await.unwrap();
    let sessions: std::collections::HashSet<String> = database
        .sql("SELECT epoch FROM loomd.event WHERE seq > 0 ORDER BY seq")
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(sessions.len(), 3, "one epoch for each owner");
}

#[tokio::test]
async fn ending_a_session_frees_its_leases_at_once() {
    let Some(database) = Database::new() else { return };
    let (ours, theirs) = (database.store(), database.store());
    let (id, reader) = stored(&ours, "hello").await;
    let mut held = reader.writer().await.unwrap();
    let nodes = theirs.nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[0].threads, nodes[0].draining), (1, 1, false));
    ours.shared().unwrap().drain(nodes[0].session).await.unwrap();
    assert!(theirs.nodes().await.unwrap()[0].draining);
    ours.end_session().await.unwrap();
    let other = theirs.open(id).await.unwrap();
    other.writer().await.unwrap().append(user("theirs"), Durability::Flushed).await.unwrap();
    assert_eq!(held.append(user("late"), Durability::Flushed).await.err(), Some(Error::StaleLease { id }));
}

#[tokio::test]
async fn a_session_is_renewed_as_long_as_its_store_is_there() {
    let Some(database) = Database::new() else { return };
    let store = PostgresStore::new(Options { session_ttl: Duration::from_secs(600), ..database.options() });
    let (_, reader) = stored(&store, "hello").await;
    let _writer = reader.writer().await.unwrap();
    database.sql("UPDATE loomd.node SET expires_at = clock_timestamp() + interval '300 seconds'");
    let renewed = async {
        while store.nodes().await.unwrap()[0].expires_in_ms < 400_000 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), renewed).await.unwrap();
}

#[tokio::test]
async fn a_writer_that_was_given_up_in_an_append_writes_nothing_more() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let (id, reader) = stored(&store, "hello").await;
    let mut writer = reader.writer().await.unwrap();
    // The append waits for the lock, and its caller does not.
    let (client, connection) =
        tokio_postgres::connect(&database.server.url(&database.name), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE loomd.thread").await.unwrap();
    let blocked = async {
        let waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'loomd.thread'::regclass";
        while client.query_opt(waiting, &[]).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // The row of the thread is complete, so that the append is the only statement that can wait.
    tokio::select! {
        appended = writer.append(user("given up"), Durability::Flushed) => panic!("{appended:?}"),
        () = blocked => {}
    }
    assert_eq!(writer.append(user("next"), Durability::Flushed).await.err(), Some(Error::StaleLease { id }));
    drop(writer);
    client.batch_execute("COMMIT").await.unwrap();
    let mut next = reader.writer().await.unwrap();
    let appended = next.append(user("next"), Durability::Flushed).await.unwrap();
    let window = reader.records_after(Position::START, usize::MAX).await.unwrap();
    assert_eq!(window.end(), appended.end);
    let texts: Vec<String> = window.lines().map(|line| String::from_utf8_lossy(line.bytes).into_owned()).collect();
    assert!(texts.last().unwrap().contains("next") && texts.iter().filter(|text| text.contains("next")).count() == 1);
}

#[tokio::test]
async fn large_records_are_stored_once_beside_the_others_and_end_with_their_thread() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let (id, reader) = stored(&store, "hello").await;
    let large = format!("{{\"type\":\"x\",\"payload\":\"{}\"}}\n", "y".repeat(100_000));
    append(&*reader, format!("{large}small\n{large}").into_bytes()).await;
    assert_eq!(database.sql("SELECT count(*) FROM loomd.blob"), "1");
    let window = reader.records_after(Position::from_bits(2), usize::MAX).await.unwrap();
    assert_eq!(window.bytes(), format!("{large}small\n{large}").as_bytes());
    let check = store.check().await.unwrap();
    assert_eq!((check.threads, check.events, check.broken, check.missing_blobs), (1, 5, 0, 0));
    store.delete(id).await.unwrap();
    assert_eq!(database.sql("SELECT (SELECT count(*) FROM loomd.blob) + (SELECT count(*) FROM loomd.event)"), "0");
}

#[tokio::test]
async fn a_check_finds_gaps_and_missing_blobs() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let fresh = store.check().await.unwrap();
    assert_eq!((fresh.schema, fresh.threads), (0, 0), "a check makes no tables");
    let (_, reader) = stored(&store, "hello").await;
    append(&*reader, format!("{}\n", "z".repeat(70_000)).into_bytes()).await;
    database.sql("DELETE FROM loomd.event WHERE seq = 1; DELETE FROM loomd.blob");
    let check = store.check().await.unwrap();
    assert_eq!((check.schema, check.broken, check.missing_blobs), (SCHEMA_VERSION, 1, 1));
}

#[tokio::test]
async fn texts_with_nul_are_stored_and_listed() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let (id, _) = stored(&store, "a\0b").await;
    store.rename(id, "na\0me").await.unwrap();
    let found = store.find(id, None).await.unwrap();
    assert_eq!((found.preview.as_deref(), found.name.as_deref()), (Some("a\u{fffd}b"), Some("na\u{fffd}me")));
    let query = ListQuery { search: Some("a\0b".into()), ..ListQuery::new("mock") };
    assert_eq!(store.list(query).await.unwrap().threads.len(), 1);
}

#[tokio::test]
async fn a_change_by_one_process_wakes_subscribers_of_another() {
    let Some(database) = Database::new() else { return };
    let ours = database.store();
    let node = NodeFacts { url: Some("ws://127.0.0.1:1".into()), ..Default::default() };
    ours.shared().unwrap().register(Uuid::now_v7(), node).await.unwrap();
    let theirs = database.store();
    let (id, reader) = stored(&ours, "hello").await;
    let mut wakeups = theirs.wakeups();
    // The subscriber may not be connected at first; it looks by itself then.
    loop {
        append(&*reader, b"{}\n".to_vec()).await;
        if wakeups.next().await == Some(id) {
            break;
        }
    }
}

#[tokio::test]
async fn goals_and_queues_are_shared_between_processes() {
    let Some(database) = Database::new() else { return };
    let (one, two) = (database.store(), database.store());
    let (id, one, two) = (ThreadId::new(), one.work(), two.work());
    let input = |text: &str| vec![UserInput::Text { text: text.into(), text_elements: Vec::new() }];
    let add = async |work: &WorkStore, text: &str| match work.enqueue(id, text.to_owned(), input(text)).await.unwrap() {
        Enqueued::Added(message) => message,
        other => panic!("{other:?}"),
    };
    let waiting = async |work: &WorkStore| {
        let page = work.queue_page(id, 0, 100).await.unwrap();
        page.messages.into_iter().map(|message: QueuedMessage| message.client_id).collect::<Vec<_>>()
    };
    assert!(!one.has_queued(id).await.unwrap());
    let (a, b, c) = (add(one, "a").await, add(two, "b").await, add(one, "c").await);
    assert_eq!(one.enqueue(id, "b".into(), input("b")).await.unwrap(), Enqueued::Present(b.clone()));
    assert!(!two.reorder_queue(id, vec![a.id.clone(), b.id.clone()]).await.unwrap());
    assert!(two.reorder_queue(id, vec![c.id.clone(), a.id.clone(), b.id.clone()]).await.unwrap());
    assert_eq!(waiting(one).await, ["c", "a", "b"]);
    let changed = two.update_queued(id, a.id.clone(), input("A")).await.unwrap().unwrap();
    assert_eq!((changed.id, changed.input), (a.id.clone(), input("A")));
    assert_eq!(one.claim(id, None, "turn".into()).await.unwrap().unwrap(), c);
    assert_eq!(two.claims(id).await.unwrap()[0].turn_id, "turn");
    two.release_claim(id, "turn".into()).await.unwrap();
    assert_eq!(waiting(two).await, ["c", "a", "b"]);
    two.claim(id, Some(b.id.clone()), "turn".into()).await.unwrap().unwrap();
    one.settle_claim(id, "turn".into()).await.unwrap();
    let again = two.enqueue(id, "b".into(), input("b")).await.unwrap();
    assert_eq!(again, Enqueued::Started { turn_id: "turn".into() });
    assert!(one.delete_queued(id, a.id.clone()).await.unwrap() && !two.delete_queued(id, a.id).await.unwrap());
    assert_eq!(one.queued(id, None).await.unwrap(), Some(c));

    let goal = Goal {
        id: Uuid::now_v7(),
        objective: "ship\0it".into(),
        status: ThreadGoalStatus::Active,
        token_budget: Some(7),
        tokens_used: 3,
        time_used_ms: 1999,
        created_at_ms: 1_000,
        updated_at_ms: 2_000,
        stalled: None,
        wrapped_up: true,
        turns: 4,
        idle_turns: 2,
    };
    let kept = goal.clone();
    one.change_goal(id, move |stored| *stored = Some(kept)).await.unwrap();
    assert_eq!(two.goal(id).await.unwrap(), Some(goal));
    let add = async |work: WorkStore| {
        for _ in 0..10 {
            let count = |goal: &mut Option<Goal>| goal.iter_mut().for_each(|goal| goal.turns += 1);
            work.change_goal(id, count).await.unwrap();
        }
    };
    tokio::join!(add(one.clone()), add(two.clone()));
    assert_eq!(one.goal(id).await.unwrap().unwrap().turns, 24, "no change is lost");
    two.forget(id).await.unwrap();
    assert_eq!((one.goal(id).await.unwrap(), one.has_queued(id).await.unwrap()), (None, false));
}

#[tokio::test]
async fn threads_go_into_the_database_and_back_byte_for_byte() {
    let Some(database) = Database::new() else { return };
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = |home: &tempfile::TempDir| {
        FileStore::new(loomd_store::Options { home: home.path().to_owned(), sqlite_home: None })
    };
    let (home, store) = (files(&from), database.store());
    let mut ids = Vec::new();
    for number in 0..12 {
        let (id, reader) = stored(&home, &format!("thread {number}")).await;
        append(&*reader, format!("{{ \"odd\" :  {number} }}\nno record\n{}\n", "x".repeat(90_000)).into_bytes()).await;
        ids.push(id);
    }
    home.rename(ids[0], "named").await.unwrap();
    home.archive(ids[1]).await.unwrap();
    let done = import(&home, &store).await.unwrap();
    assert_eq!((done.copied, done.present, done.records, done.refused), (12, 0, 60, vec![]));
    let again = import(&home, &store).await.unwrap();
    assert_eq!((again.copied, again.present), (0, 12));
    let found = store.find(ids[0], None).await.unwrap();
    let before = home.find(ids[0], None).await.unwrap();
    assert_eq!((found.name.as_deref(), found.updated_at), (Some("named"), before.updated_at));
    let back = files(&to);
    let done = export(&store, &back).await.unwrap();
    assert_eq!((done.copied, done.refused), (12, vec![]));
    for id in ids {
        let (ours, theirs) = (home.find(id, None).await.unwrap(), back.find(id, None).await.unwrap());
        assert_eq!((ours.archived, ours.name, ours.updated_at), (theirs.archived, theirs.name, theirs.updated_at));
        let bytes = |path: Option<std::path::PathBuf>| std::fs::read(path.unwrap()).unwrap();
        assert_eq!(bytes(ours.path), bytes(theirs.path));
    }
}

/// The number of threads, 60 unless `LOOMD_IMPORT` says otherwise.
fn imported() -> usize {
    std::env::var("LOOMD_IMPORT").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

#[tokio::test]
async fn every_rollout_comes_back_from_the_database_as_it_was() {
    let Some(database) = Database::new() else { return };
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let count = imported();
    for number in 0..count {
        let id = ThreadId::new();
        let day = format!("2025-03-{:02}", number % 28 + 1);
        let folder = from.path().join("sessions").join(day.replace('-', "/"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut text = lines(id, &format!("thread {number}")).replace("2025-03-04", &day);
        for turn in 0..number % 40 {
            text += &format!("{{ \"odd\" :  {turn} , \"text\": \"{}\"}}\n", "x\\u0000é".repeat(turn * 3));
        }
        if number % 50 == 7 {
            text += &format!("{{\"large\":\"{}\"}}\n", "y".repeat(100_000));
        }
        std::fs::write(folder.join(format!("rollout-{day}T05-06-07-{id}.jsonl")), text).unwrap();
    }
    let files = |home: &tempfile::TempDir| {
        FileStore::new(loomd_store::Options { home: home.path().to_owned(), sqlite_home: None })
    };
    let (home, store, back) = (files(&from), database.store(), files(&to));
    let began = std::time::Instant::now();
    let done = import(&home, &store).await.unwrap();
    let took = began.elapsed();
    assert_eq!(done.refused, [] as [&str; 0]);
    for id in contents(from.path()).keys() {
        assert!(store.find(id.parse().unwrap(), None).await.is_ok(), "{id} was not copied");
    }
    assert_eq!(done.copied, count);
    let again = import(&home, &store).await.unwrap();
    assert_eq!((again.copied, again.present), (0, count));
    let began = std::time::Instant::now();
    let done = export(&store, &back).await.unwrap();
    println!("{count} threads, {} records: import {took:?}, export {:?}", done.records, began.elapsed());
    assert_eq!((done.copied, done.refused.as_slice()), (count, [].as_slice()));
    assert_eq!(contents(to.path()), contents(from.path()));
}

/// The rollouts of a home, by name.
fn contents(home: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    let mut folders = vec![home.join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A thread is told by its id; the time in the name is the session's.
            let name = path.file_stem().unwrap().to_str().unwrap();
            let id = name[name.len() - 36..].to_owned();
            all.insert(id, std::fs::read(&path).unwrap());
        }
    }
    all
}

#[tokio::test]
async fn no_list_reads_the_whole_table() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let (first, _) = stored(&store, "hello").await;
    database.sql(&many::fill(20_000));
    for (name, query) in many::queries(first) {
        let plan = store.explain_list(&query).await.unwrap();
        let whole = ["Seq Scan on thread", "Seq Scan on preview"].iter().any(|scan| plan.contains(scan));
        assert!(!whole && plan.contains("Index"), "{name}:\n{plan}");
    }
    database.sql(&format!("DELETE FROM loomd.thread WHERE id = '{first}'"));
    assert_eq!(database.sql("SELECT count(*) FROM loomd.preview"), "20000");
}

#[tokio::test]
async fn previews_are_searched_with_an_index_wherever_its_extension_is_and_without_it() {
    const INDEXES: &str = "SELECT count(*) FROM pg_indexes WHERE indexname = 'preview_by_text'";
    let before = [
        ("", "1"),
        ("CREATE EXTENSION pg_trgm", "1"),
        // What the extension would make is there.
        (
            "CREATE SCHEMA loomd; CREATE FUNCTION loomd.similarity(text, text) RETURNS real LANGUAGE sql AS 'SELECT 0'",
            "0",
        ),
    ];
    for (before, indexes) in before {
        let Some(database) = Database::new() else { return };
        database.sql(before);
        let store = database.store();
        let (id, _) = stored(&store, "hello there").await;
        assert_eq!(database.sql(INDEXES), indexes, "{before}");
        for (term, found) in [("lo the", vec![id]), ("lo_the", Vec::new())] {
            let query = ListQuery { search: Some(term.into()), ..ListQuery::new("mock") };
            let page = store.list(query).await.unwrap();
            assert_eq!(page.threads.iter().map(|thread| thread.id()).collect::<Vec<_>>(), found, "{before}: {term}");
        }
    }
}

/// The error of a store that cannot be used.
async fn refused(url: &str) -> String {
    let address: Address = url.parse().unwrap();
    let error = PostgresStore::new(Options::new(address)).connect().await.unwrap_err().to_string();
    assert!(!error.contains('\n') && !error.contains("secret"), "{error}");
    error
}

#[tokio::test]
async fn what_is_wrong_with_a_database_is_one_clear_line() {
    let Some(database) = Database::new() else { return };
    let (server, name) = (database.server, &database.name);
    database.sql(&format!("CREATE ROLE poor LOGIN PASSWORD 'secret'; REVOKE CREATE ON DATABASE {name} FROM PUBLIC"));
    let error = refused(&server.url_as("poor", "secret2", name)).await;
    assert!(error.ends_with(": wrong password for user \"poor\""), "{error}");
    let error = refused(&server.url_as("poor", "secret", name)).await;
    assert!(error.contains("user \"poor\" lacks rights: permission denied for database"), "{error}");
    let error = refused(&server.url_as("poor", "secret", "nowhere")).await;
    assert!(error.ends_with("database \"nowhere\" does not exist: create it first"), "{error}");
    let error = refused(&server.url("nowhere").replace("postgres@", "nobody_here@")).await;
    assert!(error.contains("nobody_here"), "{error}");
    let error = refused(&server.tcp_url("poor", "secret", name, "sslmode=disable")).await;
    assert!(error.ends_with("the server requires TLS for user \"poor\": use sslmode=require"), "{error}");
    let error = refused(&server.tcp_url("poor", "secret", name, "sslmode=require")).await;
    assert!(error.contains("the server's certificate is not trusted"), "{error}");
    let error = refused(&server.tcp_url("poor", "secret", name, "sslrootcert=/nowhere.pem")).await;
    assert!(error.contains("`sslrootcert` /nowhere.pem: "), "{error}");

    database.store().connect().await.unwrap();
    database.sql("INSERT INTO loomd.schema_version (version, at) VALUES (99, now())");
    let error = refused(&server.url(name)).await;
    let expected =
        format!("the schema has version 99, and this program knows version {SCHEMA_VERSION}: use a newer loomd");
    assert!(error.ends_with(&expected), "{error}");
}

#[tokio::test]
async fn a_database_is_used_over_tls_by_a_user_with_just_enough_rights() {
    let Some(database) = Database::new() else { return };
    let (server, name) = (database.server, &database.name);
    database.sql(&format!("CREATE ROLE modest LOGIN PASSWORD 'secret'; GRANT CREATE ON DATABASE {name} TO modest"));
    // The test reads the certificate as an ordinary user, too.
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), loomd_testkit::Tls::CERTIFICATE).unwrap();
    let options = format!("sslmode=verify-full&sslrootcert={}", certificate.path().display());
    let address: Address = server.tcp_url("modest", "secret", name, &options).parse().unwrap();
    let store = PostgresStore::new(Options::new(address));
    let (id, _) = stored(&store, "hello").await;
    assert_eq!(store.find(id, None).await.unwrap().preview.as_deref(), Some("hello"));
    let encrypted =
        "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'modest'";
    assert_eq!(database.sql(encrypted), "t");
}

#[tokio::test]
async fn nodes_that_start_at_once_make_the_tables_once() {
    let Some(database) = Database::new() else { return };
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let store = database.store();
        starting.spawn(async move { store.connect().await });
    }
    while let Some(started) = starting.join_next().await {
        started.unwrap().unwrap();
    }
    assert_eq!(database.sql("SELECT count(*) FROM loomd.schema_version"), SCHEMA_VERSION.to_string());
}

#[tokio::test]
async fn more_callers_than_connections_take_turns() {
    let Some(database) = Database::new() else { return };
    let store = PostgresStore::new(Options { connections: 2, ..database.options() });
    let (id, _) = stored(&store, "hello").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let store = store.clone();
        tasks.spawn(async move { store.find(id, None).await });
    }
    while let Some(found) = tasks.join_next().await {
        assert_eq!(found.unwrap().unwrap().id(), id);
    }
}

#[tokio::test]
async fn connections_that_the_server_ends_are_replaced() {
    let Some(database) = Database::new() else { return };
    let store = database.store();
    let (id, reader) = stored(&store, "hello").await;
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()",
        database.name
    );
    database.server.sql("postgres", &end);
    // Each use may meet a connection whose end was not noticed yet; there are four at most.
    let mut found = store.find(id, None).await;
    for _ in 0..8 {
        if found.is_ok() {
            break;
        }
        found = store.find(id, None).await;
    }
    assert_eq!(found.unwrap().id(), id);
    let mut appended = None;
    for _ in 0..8 {
        let Ok(mut writer) = reader.writer().await else { continue };
        if let Ok(done) = writer.append(user("again"), Durability::Flushed).await {
            appended = Some(done);
            break;
        }
    }
    assert_eq!(appended.map(|done| done.end), Some(reader.end().await.unwrap()));
}

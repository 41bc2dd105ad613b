//! What a file store does beyond the suite that it shares with others: files, paths, damage and other programs.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::fs;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use loomd_store::rollout::{Line, Record};
use loomd_store::{
    Batch, Durability, Error, Failure, FileBacked, FileStore, ListQuery, Options, Position, Reader, Store, ThreadId,
};

mod support;
use support::*;

fn decoded(bytes: &[u8]) -> Vec<Record> {
    loomd_store::rollout::whole_lines(bytes).filter_map(|(_, line)| Line::parse(line)?.decode()).collect()
}

async fn all(reader: &dyn Reader) -> Vec<Record> {
    decoded(reader.records_after(Position::START, 1 << 20).await.unwrap().bytes())
}

async fn append(reader: &dyn Reader, record: Record) -> Result<(), Error> {
    reader.writer().await?.append(batch(&[record]), Durability::Flushed).await.map(|_| ())
}

async fn previews(store: &FileStore, archived: bool) -> Vec<String> {
    let page = store.list(ListQuery { archived, ..ListQuery::new("mock") }).await.unwrap();
    page.threads.into_iter().filter_map(|thread| thread.preview).collect()
}

#[tokio::test]
async fn a_thread_has_a_path_from_the_start_and_a_file_from_its_first_batch() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (id, created) = (ThreadId::new(), Timestamp::now());
    let reader = store.create(id, created);
    let path = store.files().unwrap().path(id).unwrap();
    assert!(!path.exists() && path.starts_with(home.path().join("sessions")));
    append(&*reader, Record::SessionMeta(Box::new(meta(id, created.as_second())))).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), reader.end().await.unwrap().to_bits());
    assert_eq!(store.find(id, None).await.unwrap().path, Some(path));
}

#[tokio::test]
async fn nothing_is_kept_in_memory_for_a_thread_without_readers() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = store(home.path());
    let id = ThreadId::new();
    let path = elsewhere.path().join("any name");
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    let (_, reader) = store.adopt(&path).await.unwrap();
    let second = store.open(id).await.unwrap();
    drop(reader);
    assert_eq!(store.path(id), Some(path));
    let writer = second.writer().await.unwrap();
    drop(second);
    assert!(store.path(id).is_some(), "a writer keeps its thread open");
    drop(writer);
    assert_eq!(store.path(id), None);
    assert!(matches!(store.open(id).await.err(), Some(Error::NotFound { .. })), "it is not in the home");
}

#[tokio::test]
async fn a_lease_whose_file_was_removed_is_stale() {
    let home = tempfile::tempdir().unwrap();
    let (ours, theirs) = (store(home.path()), store(home.path()));
    let (id, path) = thread(home.path(), "hello", BASE);
    let (reader, other) = (ours.open(id).await.unwrap(), theirs.open(id).await.unwrap());
    let mut stale = reader.writer().await.unwrap();
    assert!(matches!(other.writer().await.err(), Some(Error::Held { pid: Some(_), .. })));
    fs::remove_dir_all(home.path().join("loomd")).unwrap();
    let mut valid = other.writer().await.unwrap();
    let before = fs::read(&path).unwrap();
    let refused = stale.append(batch(&[user("late")]), Durability::Flushed).await;
    assert!(matches!(refused, Err(Error::StaleLease { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    valid.append(batch(&[user("on time")]), Durability::Flushed).await.unwrap();
}

#[tokio::test]
async fn an_append_that_was_given_up_on_does_not_keep_the_next_writer_out() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (id, _) = thread(home.path(), "hello", BASE);
    let reader = store.open(id).await.unwrap();
    for _ in 0..8 {
        let mut writer = reader.writer().await.unwrap();
        let large = batch(&[agent(&"x".repeat(1_000_000))]);
        {
            let mut append = writer.append(large, Durability::Flushed);
            // Started, and given up on unless it is over by now.
            _ = std::future::poll_fn(|cx| std::task::Poll::Ready(append.as_mut().poll(cx))).await;
        }
        drop(writer);
        append(&*reader, user("next")).await.unwrap();
    }
    assert_eq!(all_lines(&*reader).await, 3 + 8 * 2);
}

async fn all_lines(reader: &dyn Reader) -> usize {
    let (mut count, mut at) = (0, Position::START);
    loop {
        let window = reader.records_after(at, 1 << 20).await.unwrap();
        if window.is_empty() {
            return count;
        }
        count += window.lines().filter(|line| Line::parse(line.bytes).is_some()).count();
        at = window.end();
    }
}

#[tokio::test]
async fn copies_keep_lines_of_every_kind() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let source = br#"{"timestamp":"old","type":"future","payload":{"x":1}}"#;
    let id = ThreadId::new();
    let reader = store.create(id, Timestamp::now());
    let mut copy = Batch::new();
    copy.push(&Record::SessionMeta(Box::new(meta(id, BASE)))).unwrap();
    copy.push_copy(&Line::parse(source).unwrap());
    reader.writer().await.unwrap().append(copy, Durability::Flushed).await.unwrap();
    let window = reader.records_before(None, 1).await.unwrap();
    let last = Line::parse(window.lines().last().unwrap().bytes).unwrap();
    assert_eq!((&*last.kind, last.payload.get()), ("future", r#"{"x":1}"#));
}

#[tokio::test]
async fn archiving_moves_the_file_and_keeps_its_time_of_change() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (id, path) = thread(home.path(), "hello", BASE);
    set_mtime(&path, BASE);
    store.archive(id).await.unwrap();
    let archived = home.path().join("archived_sessions").join(path.file_name().unwrap());
    assert!(!path.exists());
    let found = store.find(id, Some(true)).await.unwrap();
    assert_eq!((found.path, found.updated_at), (Some(archived), BASE));
    let before = SystemTime::now() - Duration::from_secs(1);
    let back = store.unarchive(id).await.unwrap();
    assert_eq!(back.path.as_ref(), Some(&path));
    assert!(fs::metadata(&path).unwrap().modified().unwrap() >= before && back.updated_at > BASE);
    store.delete(id).await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_thread_whose_file_another_program_removed_is_not_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (id, path) = thread(home.path(), "hello", BASE);
    let reader = store.open(id).await.unwrap();
    reader.end().await.unwrap();
    fs::remove_file(&path).unwrap();
    let refused = append(&*reader, user("late")).await;
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn names_and_git_facts_survive_the_loss_of_the_index() {
    let home = tempfile::tempdir().unwrap();
    let (id, _) = thread(home.path(), "hello", BASE);
    let ours = store(home.path());
    ours.rename(id, "My name").await.unwrap();
    let patch = loomd_store::GitPatch { sha: Some(Some("abc".into())), ..Default::default() };
    ours.patch_git(id, &patch).await.unwrap();
    let found = ours.find(id, None).await.unwrap();
    assert_eq!(found.name.as_deref(), Some("My name"));
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(home.path().join(format!("loomd.sqlite{suffix}")));
    }
    assert_eq!(store(home.path()).find(id, None).await.unwrap(), found);
}

#[tokio::test]
async fn a_rollout_anywhere_can_be_adopted() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = store(home.path());
    let id = ThreadId::new();
    let path = elsewhere.path().join("any name");
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    let (thread, reader) = store.adopt(&path).await.unwrap();
    assert_eq!((thread.id(), thread.preview.as_deref(), thread.path.as_ref()), (id, Some("hello"), Some(&path)));
    append(&*reader, user("more")).await.unwrap();
    assert_eq!(decoded(&fs::read(&path).unwrap()).len(), 3);
    assert_eq!(all(&*store.open(id).await.unwrap()).await.len(), 3, "it is stored there while it is open");
    assert!(matches!(store.archive(id).await, Err(Error::NotFound { .. })));

    let missing = store.adopt(&elsewhere.path().join("missing")).await.err().unwrap();
    assert!(matches!(&missing, Error::Storage { failure: Failure::Missing, .. }), "{missing:?}");
    assert!(missing.to_string().ends_with("No such file or directory (os error 2)"), "{missing}");
    fs::write(&path, " \n").unwrap();
    assert!(matches!(store.adopt(&path).await.err(), Some(Error::Empty { .. })));
    fs::write(&path, "{}\n").unwrap();
    assert!(matches!(store.adopt(&path).await.err(), Some(Error::NoSessionMeta { .. })));
}

#[tokio::test]
async fn a_damaged_file_is_found_and_the_error_names_the_damage() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (empty, path) = thread(home.path(), "x", BASE);
    fs::write(path, "").unwrap();
    let (headless, path) = thread(home.path(), "x", BASE);
    fs::write(path, "not json\n").unwrap();
    let (spoilt, path) = thread(home.path(), "fine", BASE);
    append_raw(&path, b"\xff\xfe\n");
    assert!(matches!(store.find(empty, None).await, Err(Error::Empty { .. })));
    assert!(matches!(store.find(headless, None).await, Err(Error::NoSessionMeta { .. })));
    assert_eq!(store.find(spoilt, None).await.unwrap().preview.as_deref(), Some("fine"));
    assert_eq!(previews(&store, false).await, ["fine"]);
}

#[tokio::test]
async fn a_home_that_cannot_be_written_to_can_be_listed_and_an_append_says_why_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = FileStore::new(Options { home: folder.path().join("file/home"), sqlite_home: None });
    assert_eq!(previews(&store, false).await, Vec::<String>::new());
    let reader = store.create(ThreadId::new(), Timestamp::now());
    for error in [reader.writer().await.err(), store.rename(ThreadId::new(), "n").await.err()] {
        let error = error.unwrap();
        assert!(error.to_string().contains("Not a directory"), "{error}");
    }
}

//! A file store as its callers see it: one thread at a time.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::fs;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use loomd_protocol::GitInfo;
use loomd_store::rollout::{Line, Record};
use loomd_store::{Batch, Durability, Error, FileStore, GitPatch, ListQuery, Options, Store, ThreadId};

mod support;
use support::*;

fn texts(bytes: &[u8]) -> Vec<Record> {
    loomd_store::rollout::whole_lines(bytes).filter_map(|(_, line)| Line::parse(line)?.decode()).collect()
}

async fn previews(store: &FileStore, archived: bool) -> Vec<String> {
    let page = store.list(ListQuery { archived, ..ListQuery::new("mock") }).await.unwrap();
    page.threads.into_iter().filter_map(|thread| thread.preview).collect()
}

#[tokio::test]
async fn a_thread_is_stored_with_its_first_batch_and_not_before() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let id = ThreadId::new();
    let created = Timestamp::now();
    let path = store.place(id, created);
    assert!(!path.exists());
    assert!(matches!(store.find(id, None).await, Err(Error::NotFound { .. })));
    let lease = store.lease(id).await.unwrap();
    let meta = Record::SessionMeta(Box::new(meta(id, created.as_second())));
    let first = store.append(&lease, &batch(std::slice::from_ref(&meta)), Durability::Flushed).await.unwrap();
    assert_eq!((first.start, first.foreign), (0, None));
    assert_eq!(previews(&store, false).await, Vec::<String>::new());
    let second = store.append(&lease, &batch(&[user("hello"), agent("hi")]), Durability::Synced).await.unwrap();
    assert_eq!(second.start, first.extent.len);
    assert_eq!(store.extent(id).await.unwrap(), second.extent);
    assert_eq!(previews(&store, false).await, ["hello"]);
    let found = store.find(id, Some(false)).await.unwrap();
    assert_eq!((found.path.clone(), found.size, found.created_at()), (path, second.extent.len, created.as_second()));

    let all = store.read(id, 0, usize::MAX).await.unwrap();
    assert_eq!(texts(&all.bytes), [meta, user("hello"), agent("hi")]);
    assert_eq!(texts(&store.read(id, first.extent.len, 1).await.unwrap().bytes), [user("hello")]);
    assert_eq!(texts(&store.read_back(id, None, 1).await.unwrap().bytes), [agent("hi")]);
}

#[tokio::test]
async fn derived_data_survives_a_restart_and_ends_with_its_thread() {
    let home = tempfile::tempdir().unwrap();
    let (id, _) = thread(home.path(), "hello", BASE);
    let ours = store(home.path());
    assert_eq!(ours.derived(id).await.unwrap(), None);
    for bytes in [vec![1], vec![2; 100_000]] {
        ours.keep_derived(id, bytes.clone()).await.unwrap();
        assert_eq!(store(home.path()).derived(id).await.unwrap(), Some(bytes));
    }
    let lease = ours.lease(id).await.unwrap();
    ours.delete(&lease).await.unwrap();
    assert_eq!(ours.derived(id).await.unwrap(), None);
}

#[tokio::test]
async fn writing_needs_a_valid_lease() {
    let home = tempfile::tempdir().unwrap();
    let (ours, theirs) = (store(home.path()), store(home.path()));
    let (id, path) = thread(home.path(), "hello", BASE);
    let lease = ours.lease(id).await.unwrap();
    assert!(matches!(theirs.lease(id).await, Err(Error::Held { pid: Some(_), .. })));
    fs::remove_dir_all(home.path().join("loomd")).unwrap();
    let taken = theirs.lease(id).await.unwrap();
    let before = fs::read(&path).unwrap();
    let refused = ours.append(&lease, &batch(&[user("late")]), Durability::Flushed).await;
    assert!(matches!(refused, Err(Error::StaleLease { .. })));
    assert!(matches!(ours.archive(&lease).await, Err(Error::StaleLease { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    theirs.append(&taken, &batch(&[user("on time")]), Durability::Flushed).await.unwrap();
}

#[tokio::test]
async fn what_another_process_appends_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let (ours, theirs) = (store(home.path()), store(home.path()));
    let (id, _) = thread(home.path(), "hello", BASE);
    let seen = ours.extent(id).await.unwrap();
    {
        let lease = theirs.lease(id).await.unwrap();
        theirs.append(&lease, &batch(&[user("theirs")]), Durability::Flushed).await.unwrap();
    }
    let lease = ours.lease(id).await.unwrap();
    let appended = ours.append(&lease, &batch(&[user("ours")]), Durability::Flushed).await.unwrap();
    let foreign = appended.foreign.unwrap();
    assert_eq!((foreign.start, foreign.end), (seen.len, appended.start));
    let window = ours.read(id, foreign.start, (foreign.end - foreign.start) as usize).await.unwrap();
    assert_eq!(texts(&window.bytes), [user("theirs")]);
}

#[tokio::test]
async fn copies_keep_lines_of_every_kind() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let source = br#"{"timestamp":"old","type":"future","payload":{"x":1}}"#;
    let id = ThreadId::new();
    store.place(id, Timestamp::now());
    let mut copy = Batch::new();
    copy.push(&Record::SessionMeta(Box::new(meta(id, BASE)))).unwrap();
    copy.push_copy(&Line::parse(source).unwrap());
    let lease = store.lease(id).await.unwrap();
    store.append(&lease, &copy, Durability::Flushed).await.unwrap();
    let window = store.read_back(id, None, 1).await.unwrap();
    let (_, last) = window.lines().last().unwrap();
    let last = Line::parse(last).unwrap();
    assert_eq!((&*last.kind, last.payload.get()), ("future", r#"{"x":1}"#));
}

#[tokio::test]
async fn a_thread_goes_to_the_archive_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (id, path) = thread(home.path(), "hello", BASE);
    set_mtime(&path, BASE);
    let lease = store.lease(id).await.unwrap();
    assert!(matches!(store.unarchive(&lease).await, Err(Error::NotFound { .. })));
    let archived = store.archive(&lease).await.unwrap();
    assert_eq!(archived, home.path().join("archived_sessions").join(path.file_name().unwrap()));
    assert!(!path.exists());
    assert!(matches!(store.archive(&lease).await, Err(Error::NotFound { .. })));
    assert!(matches!(store.find(id, Some(false)).await, Err(Error::NotFound { .. })));
    let found = store.find(id, Some(true)).await.unwrap();
    assert_eq!((found.archived, found.updated_at), (true, BASE));
    assert_eq!((previews(&store, false).await, previews(&store, true).await), (vec![], vec!["hello".into()]));
    assert_eq!(texts(&store.read(id, 0, 9999).await.unwrap().bytes).len(), 3);

    let before = SystemTime::now() - Duration::from_secs(1);
    let back = store.unarchive(&lease).await.unwrap();
    assert_eq!((back.path.clone(), back.archived), (path.clone(), false));
    assert!(fs::metadata(&path).unwrap().modified().unwrap() >= before && back.updated_at > BASE);
    assert_eq!(previews(&store, false).await, ["hello"]);

    store.delete(&lease).await.unwrap();
    assert!(!path.exists());
    assert!(matches!(store.find(id, None).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_thread_that_another_process_archived_is_still_read_and_not_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let (ours, theirs) = (store(home.path()), store(home.path()));
    let (id, path) = thread(home.path(), "hello", BASE);
    ours.extent(id).await.unwrap();
    {
        let lease = theirs.lease(id).await.unwrap();
        theirs.archive(&lease).await.unwrap();
    }
    assert_eq!(texts(&ours.read(id, 0, 9999).await.unwrap().bytes).len(), 3);
    ours.release(id);
    let (id, path2) = thread(home.path(), "second", BASE);
    ours.extent(id).await.unwrap();
    fs::remove_file(&path2).unwrap();
    let lease = ours.lease(id).await.unwrap();
    let refused = ours.append(&lease, &batch(&[user("late")]), Durability::Flushed).await;
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert!(!path.exists() && !path2.exists());
}

#[tokio::test]
async fn names_and_git_facts_show_in_lookups_and_lists() {
    let home = tempfile::tempdir().unwrap();
    let id = ThreadId::new();
    let path = place(home.path(), id, BASE, false);
    let mut facts = meta(id, BASE);
    facts.git = Some(git("main"));
    write_thread(&path, &facts, &[user("hello")]);
    let store = store(home.path());
    assert_eq!(store.name(id).await.unwrap(), None);
    store.rename(id, "My name").await.unwrap();
    store
        .patch_git(id, &GitPatch { sha: Some(Some("abc".into())), branch: Some(None), origin_url: None })
        .await
        .unwrap();
    let info = Some(GitInfo { sha: Some("abc".into()), branch: None, origin_url: None });
    let found = store.find(id, None).await.unwrap();
    assert_eq!((found.name.as_deref(), &found.git_info), (Some("My name"), &info));
    let page = store.list(ListQuery::new("mock")).await.unwrap();
    assert_eq!(page.threads, std::slice::from_ref(&found));
    let wire = found.to_wire("mock");
    assert_eq!((wire.preview.as_str(), wire.created_at, wire.model_provider.as_str()), ("hello", BASE, "mock"));
    // The index is not the only copy of anything.
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(home.path().join(format!("loomd.sqlite{suffix}")));
    }
    assert_eq!(support::store(home.path()).find(id, None).await.unwrap(), found);
}

#[tokio::test]
async fn a_rollout_anywhere_can_be_taken_up() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = store(home.path());
    let id = ThreadId::new();
    let path = elsewhere.path().join("any name");
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    let thread = store.adopt(&path).await.unwrap();
    assert_eq!((thread.id(), thread.preview.as_deref(), &thread.path), (id, Some("hello"), &path));
    let lease = store.lease(id).await.unwrap();
    store.append(&lease, &batch(&[user("more")]), Durability::Flushed).await.unwrap();
    assert_eq!(texts(&fs::read(&path).unwrap()).len(), 3);
    assert!(matches!(store.archive(&lease).await, Err(Error::NotFound { .. })));

    let missing = store.adopt(&elsewhere.path().join("missing")).await.unwrap_err();
    assert!(missing.to_string().ends_with("No such file or directory (os error 2)"), "{missing}");
    fs::write(&path, " \n").unwrap();
    assert!(matches!(store.adopt(&path).await, Err(Error::Empty { .. })));
    fs::write(&path, "{}\n").unwrap();
    assert!(matches!(store.adopt(&path).await, Err(Error::NoSessionMeta { .. })));
}

#[tokio::test]
async fn damaged_files_are_found_and_say_what_is_wrong() {
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
async fn a_home_that_cannot_be_written_to_still_reads_and_says_so_when_writing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = FileStore::new(Options { home: folder.path().join("file/home"), sqlite_home: None });
    assert_eq!(previews(&store, false).await, Vec::<String>::new());
    for error in
        [store.lease(ThreadId::new()).await.unwrap_err(), store.rename(ThreadId::new(), "n").await.unwrap_err()]
    {
        assert!(error.to_string().contains("Not a directory"), "{error}");
    }
}

//! Archiving, unarchiving and deleting, and threads that are not there.

use super::*;
use crate::Error;

fn archived() -> ListQuery {
    ListQuery { archived: true, ..query() }
}

pub async fn a_thread_that_was_never_stored_is_not_found(harness: &impl Harness) {
    let store = harness.open();
    let id = ThreadId::new();
    let errors = [
        store.open(id).await.err(),
        store.find(id, None).await.err(),
        store.find(id, Some(true)).await.err(),
        store.archive(id).await.err(),
        store.unarchive(id).await.err(),
        store.delete(id).await.err(),
    ];
    for error in errors {
        assert_eq!(error, Some(Error::NotFound { id }));
    }
    assert_eq!(Error::NotFound { id }.to_string(), format!("no rollout found for thread id {id}"));
}

pub async fn an_append_does_not_bring_a_deleted_thread_back(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    theirs.delete(id).await.unwrap();
    let late = reader.writer().await.unwrap().append(batch(&[agent("late")]), Durability::Flushed).await;
    assert_eq!(late.err(), Some(Error::NotFound { id }));
    assert_eq!(ours.find(id, None).await.err(), Some(Error::NotFound { id }));
}

pub async fn an_archived_thread_is_listed_as_archived_only(harness: &impl Harness) {
    let store = harness.open();
    let (id, _) = thread(&*store, "hello").await;
    thread(&*store, "stays").await;
    let before = store.find(id, None).await.unwrap();
    store.archive(id).await.unwrap();
    for store in [store, harness.open()] {
        assert_eq!(previews(&*store, query()).await, ["stays"]);
        assert_eq!(previews(&*store, archived()).await, ["hello"]);
        assert_eq!(store.find(id, Some(false)).await.err(), Some(Error::NotFound { id }));
        let found = store.find(id, Some(true)).await.unwrap();
        assert_eq!((found.archived, found.updated_at), (true, before.updated_at), "its time of change stays");
        assert_eq!(store.find(id, None).await.unwrap(), found);
    }
}

pub async fn an_archived_thread_can_still_be_read(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    theirs.archive(id).await.unwrap();
    assert_eq!(all(&*reader).await.len(), 2, "through a reader that was opened before");
    assert_eq!(all(&*ours.open(id).await.unwrap()).await.len(), 2);
    assert_eq!(all(&*theirs.open(id).await.unwrap()).await.len(), 2);
}

pub async fn an_unarchived_thread_is_active_and_counts_as_changed(harness: &impl Harness) {
    let store = harness.open();
    let (id, reader) = thread(&*store, "hello").await;
    store.archive(id).await.unwrap();
    let before = Timestamp::now().as_second();
    let back = store.unarchive(id).await.unwrap();
    assert_eq!((back.id(), back.archived, back.preview.as_deref()), (id, false, Some("hello")));
    assert!(back.updated_at >= before);
    assert_eq!(store.find(id, Some(false)).await.unwrap(), back);
    assert_eq!((previews(&*store, query()).await, previews(&*store, archived()).await), (vec!["hello".into()], vec![]));
    append(&*reader, &[agent("more")]).await;
    assert_eq!(all(&*reader).await.len(), 3);
}

pub async fn archiving_twice_is_not_found(harness: &impl Harness) {
    let store = harness.open();
    let (id, _) = thread(&*store, "hello").await;
    assert_eq!(store.unarchive(id).await.err(), Some(Error::NotFound { id }));
    store.archive(id).await.unwrap();
    assert_eq!(store.archive(id).await.err(), Some(Error::NotFound { id }));
    store.unarchive(id).await.unwrap();
    assert_eq!(store.unarchive(id).await.err(), Some(Error::NotFound { id }));
}

pub async fn a_thread_with_a_writer_can_be_neither_archived_nor_deleted(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let writer = reader.writer().await.unwrap();
    for store in [&ours, &theirs] {
        assert!(matches!(store.archive(id).await, Err(Error::Held { .. })));
        assert!(matches!(store.delete(id).await, Err(Error::Held { .. })));
    }
    assert_eq!(previews(&*ours, query()).await, ["hello"]);
    drop(writer);
    theirs.archive(id).await.unwrap();
    let _writer = reader.writer().await.unwrap();
    assert!(matches!(theirs.unarchive(id).await, Err(Error::Held { .. })));
}

pub async fn a_deleted_thread_is_gone_for_every_process(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    for is_archived in [false, true] {
        let (id, reader) = thread(&*ours, "hello").await;
        drop(reader);
        if is_archived {
            ours.archive(id).await.unwrap();
        }
        assert_eq!(theirs.find(id, None).await.unwrap().archived, is_archived);
        ours.delete(id).await.unwrap();
        for store in [&ours, &theirs] {
            assert_eq!(store.find(id, None).await.err(), Some(Error::NotFound { id }));
            assert_eq!(store.open(id).await.err(), Some(Error::NotFound { id }));
            assert_eq!(store.list(query()).await.unwrap().threads, []);
            assert_eq!(store.list(archived()).await.unwrap().threads, []);
        }
    }
}

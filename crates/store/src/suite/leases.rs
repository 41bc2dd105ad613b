//! Leases and epochs.

use super::*;
use crate::Error;

pub async fn a_thread_has_one_writer_at_a_time(harness: &impl Harness) {
    let store = harness.open();
    let (id, reader) = thread(&*store, "hello").await;
    let _writer = reader.writer().await.unwrap();
    let held = reader.writer().await.err().unwrap();
    assert!(matches!(held, Error::Held { id: named, .. } if named == id), "{held}");
    let other = store.open(id).await.unwrap();
    assert!(matches!(other.writer().await.err(), Some(Error::Held { .. })));
    let (_, unrelated) = thread(&*store, "another").await;
    unrelated.writer().await.unwrap();
}

pub async fn a_lease_is_free_when_its_writer_is_dropped(harness: &impl Harness) {
    let (_, reader) = thread(&*harness.open(), "hello").await;
    for _ in 0..3 {
        let mut writer = reader.writer().await.unwrap();
        writer.append(batch(&[agent("hi")]), Durability::Flushed).await.unwrap();
    }
    assert_eq!(all(&*reader).await.len(), 5);
}

pub async fn a_lease_holds_between_processes(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let other = theirs.open(id).await.unwrap();
    let writer = reader.writer().await.unwrap();
    assert!(matches!(other.writer().await.err(), Some(Error::Held { .. })));
    assert_eq!(all(&*other).await.len(), 2, "reading needs no lease");
    drop(writer);
    append(&*other, &[agent("theirs")]).await;
}

pub async fn writers_of_one_reader_share_an_epoch(harness: &impl Harness) {
    let (_, reader) = thread(&*harness.open(), "hello").await;
    let first = reader.writer().await.unwrap().epoch();
    let second = reader.writer().await.unwrap().epoch();
    assert_eq!(first, second);
}

pub async fn an_epoch_grows_when_another_reader_takes_over(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let mut epoch = reader.writer().await.unwrap().epoch();
    for store in [&theirs, &ours, &theirs] {
        let next = store.open(id).await.unwrap().writer().await.unwrap().epoch();
        assert!(next > epoch, "{next} after {epoch}");
        epoch = next;
    }
}

pub async fn an_epoch_grows_when_the_first_reader_comes_back(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let first = reader.writer().await.unwrap().epoch();
    let between = theirs.open(id).await.unwrap().writer().await.unwrap().epoch();
    let back = reader.writer().await.unwrap().epoch();
    assert!(first < between && between < back, "{first} {between} {back}");
}

pub async fn an_epoch_grows_across_a_restart(harness: &impl Harness) {
    let store = harness.open();
    let (id, reader) = thread(&*store, "hello").await;
    let epoch = reader.writer().await.unwrap().epoch();
    drop((reader, store));
    let reader = harness.open().open(id).await.unwrap();
    assert!(reader.writer().await.unwrap().epoch() > epoch);
}

pub async fn a_writer_whose_lease_was_taken_over_cannot_append(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let other = theirs.open(id).await.unwrap();
    let mut stale = reader.writer().await.unwrap();
    harness.revoke_lease(id);
    let mut valid = other.writer().await.unwrap();
    assert!(valid.epoch() > stale.epoch());
    for durability in [Durability::Flushed, Durability::Synced] {
        let refused = stale.append(batch(&[agent("late")]), durability).await;
        assert!(matches!(refused, Err(Error::StaleLease { id: named }) if named == id), "{refused:?}");
    }
    let large = batch(&[agent(&"late".repeat(50_000))]);
    assert!(matches!(stale.append(large, Durability::Flushed).await, Err(Error::StaleLease { .. })));
    assert!(matches!(stale.renew().await, Err(Error::StaleLease { .. })));
    valid.append(batch(&[agent("on time")]), Durability::Flushed).await.unwrap();
    assert_eq!(all(&*reader).await[2..], [agent("on time")]);
}

pub async fn a_stale_writer_that_is_dropped_does_not_free_the_lease_of_the_next(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let stale = reader.writer().await.unwrap();
    harness.revoke_lease(id);
    let other = theirs.open(id).await.unwrap();
    let valid = other.writer().await.unwrap();
    drop(stale);
    assert!(matches!(reader.writer().await.err(), Some(Error::Held { .. })));
    valid.renew().await.unwrap();
}

pub async fn a_valid_lease_can_be_renewed(harness: &impl Harness) {
    let (id, reader) = thread(&*harness.open(), "hello").await;
    let writer = reader.writer().await.unwrap();
    let epoch = writer.epoch();
    writer.renew().await.unwrap();
    writer.renew().await.unwrap();
    assert_eq!(writer.epoch(), epoch);
    harness.revoke_lease(id);
    assert!(matches!(writer.renew().await, Err(Error::StaleLease { .. })));
}

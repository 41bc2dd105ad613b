//! Appending and reading records.

use super::*;
use crate::Error;

/// A thread with a number of records of different lengths, and those records.
async fn long_thread(store: &dyn Store, count: usize) -> (Arc<dyn Reader>, Vec<Record>) {
    let id = ThreadId::new();
    let reader = store.create(id, Timestamp::from_second(CREATED).unwrap());
    let mut records = vec![Record::SessionMeta(Box::new(meta(id, CREATED))), user("hello")];
    records.extend((2..count).map(|number| agent(&"x".repeat(number * 7 % 50))));
    append(&*reader, &records).await;
    (reader, records)
}

pub async fn a_created_thread_is_not_stored_before_its_first_append(harness: &impl Harness) {
    let store = harness.open();
    let (id, created) = (ThreadId::new(), Timestamp::from_second(CREATED).unwrap());
    let reader = store.create(id, created);
    assert_eq!(reader.id(), id);
    assert!(matches!(store.find(id, None).await, Err(Error::NotFound { .. })));
    assert_eq!(reader.end().await.unwrap(), Position::START);
    assert!(reader.records_after(Position::START, 1000).await.unwrap().is_empty());
    assert!(reader.records_before(None, 1000).await.unwrap().is_empty());
    append(&*reader, &[Record::SessionMeta(Box::new(meta(id, CREATED))), user("hello")]).await;
    let found = store.find(id, Some(false)).await.unwrap();
    assert_eq!((found.id(), found.created_at(), found.archived), (id, CREATED, false));
    assert_eq!(found.preview.as_deref(), Some("hello"));
}

pub async fn a_batch_is_read_back_as_it_was_appended(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 5).await;
    assert_eq!(all(&*reader).await, records);
}

pub async fn records_are_read_forward_in_windows_of_any_size(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 40).await;
    for limit in [1, 100, 333, 100_000] {
        let (mut read, mut at) = (Vec::new(), Position::START);
        loop {
            let window = reader.records_after(at, limit).await.unwrap();
            assert_eq!(window.start(), at);
            if window.is_empty() {
                break;
            }
            at = window.end();
            read.extend(decoded(&window));
        }
        assert_eq!(read, records, "{limit}");
        assert_eq!(at, reader.end().await.unwrap());
    }
}

pub async fn records_are_read_backward_in_windows_of_any_size(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 40).await;
    for limit in [1, 100, 333, 100_000] {
        let (mut read, mut to) = (Vec::new(), None);
        loop {
            let window = reader.records_before(to, limit).await.unwrap();
            if window.is_empty() {
                break;
            }
            assert_eq!(window.end(), to.unwrap_or(window.thread_end()));
            to = Some(window.start());
            read.splice(0..0, decoded(&window));
        }
        assert_eq!(read, records, "{limit}");
        assert_eq!(to, Some(Position::START));
    }
}

pub async fn a_window_holds_at_least_one_record_however_small_the_limit(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 5).await;
    for limit in [0, 1] {
        let first = reader.records_after(Position::START, limit).await.unwrap();
        assert_eq!(decoded(&first).first(), records.first());
        let last = reader.records_before(None, limit).await.unwrap();
        assert_eq!(decoded(&last).last(), records.last());
    }
}

pub async fn a_window_is_no_larger_than_its_limit(harness: &impl Harness) {
    let (reader, _) = long_thread(&*harness.open(), 40).await;
    for limit in [500, 1000, 2000] {
        for window in [reader.records_after(Position::START, limit).await, reader.records_before(None, limit).await] {
            let window = window.unwrap();
            assert!(window.bytes().len() <= limit && window.lines().count() > 1, "{} of {limit}", window.bytes().len());
        }
    }
}

pub async fn reading_goes_on_from_the_position_of_any_record(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 12).await;
    let whole = reader.records_after(Position::START, 100_000).await.unwrap();
    for (number, line) in whole.lines().enumerate() {
        let rest = reader.records_after(line.start, 100_000).await.unwrap();
        assert_eq!(decoded(&rest), records[number..]);
        assert_eq!(whole.lines_after(line.start).count(), records.len() - number);
        let after = reader.records_after(line.end, 100_000).await.unwrap();
        assert_eq!(decoded(&after), records[number + 1..]);
        let before = reader.records_before(Some(line.end), 100_000).await.unwrap();
        assert_eq!(decoded(&before), records[..=number]);
    }
}

pub async fn positions_grow_and_survive_being_kept_as_numbers(harness: &impl Harness) {
    let (reader, _) = long_thread(&*harness.open(), 12).await;
    let whole = reader.records_after(Position::START, 100_000).await.unwrap();
    let starts: Vec<Position> = whole.lines().map(|line| line.start).collect();
    let ends: Vec<Position> = whole.lines().map(|line| line.end).collect();
    assert!(starts.is_sorted_by(|a, b| a < b));
    assert_eq!(starts[1..], ends[..11]);
    assert_eq!((starts[0], ends[11]), (Position::START, whole.end()));
    for position in starts {
        assert_eq!(Position::from_bits(position.to_bits()), position);
    }
}

pub async fn reading_past_the_end_is_empty_and_not_an_error(harness: &impl Harness) {
    let (reader, records) = long_thread(&*harness.open(), 3).await;
    let end = reader.end().await.unwrap();
    let window = reader.records_after(end, 1000).await.unwrap();
    assert!(window.is_empty());
    assert_eq!((window.start(), window.end(), window.thread_end()), (end, end, end));
    let far = Position::from_bits(end.to_bits() + 1_000_000);
    assert!(reader.records_after(far, 1000).await.unwrap().is_empty());
    assert_eq!(decoded(&reader.records_before(Some(far), 100_000).await.unwrap()), records);
    assert!(reader.records_before(Some(Position::START), 1000).await.unwrap().is_empty());
}

pub async fn an_append_starts_where_the_last_one_ended(harness: &impl Harness) {
    let (reader, _) = long_thread(&*harness.open(), 3).await;
    let mut end = reader.end().await.unwrap();
    let mut writer = reader.writer().await.unwrap();
    for number in 0..5 {
        let appended = writer.append(batch(&[user("a"), user("b")]), Durability::Flushed).await.unwrap();
        assert_eq!(appended.start, end, "{number}");
        end = appended.end;
    }
    assert_eq!(reader.end().await.unwrap(), end);
    assert_eq!(all(&*reader).await.len(), 13);
}

pub async fn the_end_moves_with_every_append(harness: &impl Harness) {
    let store = harness.open();
    let (id, reader) = thread(&*store, "hello").await;
    let other = harness.open().open(id).await.unwrap();
    let before = other.end().await.unwrap();
    assert_eq!(before, reader.end().await.unwrap());
    append(&*reader, &[agent("hi")]).await;
    let after = other.end().await.unwrap();
    assert!(after > before);
    assert_eq!(decoded(&other.records_after(before, 1000).await.unwrap()), [agent("hi")]);
}

pub async fn a_synced_append_is_read_like_any_other(harness: &impl Harness) {
    let store = harness.open();
    let (id, created) = (ThreadId::new(), Timestamp::from_second(CREATED).unwrap());
    let reader = store.create(id, created);
    let records = [Record::SessionMeta(Box::new(meta(id, CREATED))), user("hello")];
    let mut writer = reader.writer().await.unwrap();
    writer.append(batch(&records), Durability::Synced).await.unwrap();
    assert_eq!(all(&*reader).await, records);
}

pub async fn a_batch_of_many_megabytes_is_appended_whole(harness: &impl Harness) {
    let store = harness.open();
    let (_, reader) = thread(&*store, "hello").await;
    let records: Vec<Record> = (0..40).map(|_| agent(&"x".repeat(100_000))).collect();
    let start = reader.end().await.unwrap();
    let mut writer = reader.writer().await.unwrap();
    let appended = writer.append(batch(&records), Durability::Flushed).await.unwrap();
    assert_eq!((appended.start, appended.end), (start, reader.end().await.unwrap()));
    let window = reader.records_after(start, usize::MAX / 2).await.unwrap();
    assert_eq!(decoded(&window), records);
}

pub async fn a_line_that_is_no_record_is_kept_as_it_stands(harness: &impl Harness) {
    let (_, reader) = thread(&*harness.open(), "hello").await;
    let start = reader.end().await.unwrap();
    let raw = b"\xff\xfe\n{\"type\":\"future\",\"payload\":{\"x\":1}}\n";
    let mut writer = reader.writer().await.unwrap();
    writer.append(Batch::of_lines(raw.to_vec()), Durability::Flushed).await.unwrap();
    writer.append(batch(&[user("more")]), Durability::Flushed).await.unwrap();
    let window = reader.records_after(start, 1000).await.unwrap();
    assert!(window.bytes().starts_with(raw));
    assert_eq!(decoded(&window), [user("more")]);
}

pub async fn what_is_appended_by_one_process_is_read_by_another(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, reader) = thread(&*ours, "hello").await;
    let other = theirs.open(id).await.unwrap();
    assert_eq!(all(&*other).await, all(&*reader).await);
    append(&*other, &[agent("theirs")]).await;
    append(&*reader, &[agent("ours")]).await;
    assert_eq!(all(&*reader).await[2..], [agent("theirs"), agent("ours")]);
    assert_eq!(all(&*other).await, all(&*reader).await);
}

pub async fn concurrent_appends_of_many_threads_do_not_mix(harness: &impl Harness) {
    let store = harness.open();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (_, reader) = thread(&*store, &format!("thread {number}")).await;
            let mut writer = reader.writer().await.unwrap();
            for step in 0..20 {
                let durability = if step == 19 { Durability::Synced } else { Durability::Flushed };
                let records = [agent(&format!("{number} {step} a")), agent(&format!("{number} {step} b"))];
                writer.append(batch(&records), durability).await.unwrap();
                tokio::task::yield_now().await;
            }
            let written = (0..20).flat_map(|step| ["a", "b"].map(|half| agent(&format!("{number} {step} {half}"))));
            assert_eq!(all(&*reader).await[2..], written.collect::<Vec<_>>());
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.list(query()).await.unwrap().threads.len(), 8);
}

pub async fn concurrent_writers_of_one_thread_take_turns(harness: &impl Harness) {
    let (id, reader) = thread(&*harness.open(), "hello").await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let store = harness.open();
        tasks.spawn(async move {
            let reader = store.open(id).await.unwrap();
            for step in 0..5 {
                let mut writer = loop {
                    match reader.writer().await {
                        Ok(writer) => break writer,
                        Err(Error::Held { .. }) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                };
                let records = ["a", "b"].map(|half| agent(&format!("{number} {step} {half}")));
                writer.append(batch(&records[..1]), Durability::Flushed).await.unwrap();
                tokio::task::yield_now().await;
                writer.append(batch(&records[1..]), Durability::Flushed).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let records = all(&*reader).await;
    assert_eq!(records.len(), 2 + 4 * 5 * 2);
    for pair in records[2..].chunks(2) {
        let texts = pair.iter().map(|record| match record {
            Record::EventMsg(Event::AgentMessage(message)) => message.message.as_str(),
            other => panic!("{other:?}"),
        });
        let [first, second] = texts.collect::<Vec<_>>()[..] else { panic!("an odd record") };
        assert_eq!((first.strip_suffix('a'), first.ends_with('a')), (second.strip_suffix('b'), true));
    }
}

pub async fn a_reader_outlives_the_store_handle_that_opened_it(harness: &impl Harness) {
    let store = harness.open();
    let (_, reader) = thread(&*store, "hello").await;
    drop(store);
    append(&*reader, &[agent("hi")]).await;
    assert_eq!(all(&*reader).await.len(), 3);
}

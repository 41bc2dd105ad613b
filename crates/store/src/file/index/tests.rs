//! Steps of the background work, and lists without it.

use std::io::Write;

use loomd_protocol::ThreadSortKey;

use super::*;
use crate::path::RolloutName;

fn thread(home: &Path, created: i64) -> (ThreadId, PathBuf) {
    let id = ThreadId::new();
    let time = jiff::Timestamp::from_second(created).unwrap();
    let path = RolloutName::new(id, time).active_path(home);
    let meta = serde_json::json!({
        "timestamp": "x", "type": "session_meta",
        "payload": { "id": id, "timestamp": time.to_string(), "cwd": "/", "originator": "o", "cli_version": "1" },
    });
    let user = serde_json::json!({
        "timestamp": "x", "type": "event_msg", "payload": { "type": "user_message", "message": "hi" },
    });
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("{meta}\n{user}\n")).unwrap();
    (id, path)
}

fn steps(index: &mut Index) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.last() != Some(&Step::Done) {
        steps.push(index.step().unwrap());
    }
    steps
}

#[test]
fn a_sweep_after_a_start_checks_few_files_per_step_and_all_in_the_end() {
    let home = tempfile::tempdir().unwrap();
    let threads: Vec<_> = (0..2 * SWEEP as i64 + 1).map(|number| thread(home.path(), 1_741_064_767 + number)).collect();
    steps(&mut Index::open(home.path(), home.path()).unwrap());
    // Another program went on with the oldest while no server was running.
    let (id, path) = &threads[0];
    std::fs::File::options().append(true).open(path).unwrap().write_all(b"{}\n").unwrap();
    let mut index = Index::open(home.path(), home.path()).unwrap();
    let steps = steps(&mut index);
    assert_eq!(steps.iter().filter(|step| **step == Step::Sweeping).count(), 2, "{steps:?}");
    let row = row::by_id(&index.db, *id, None).unwrap().unwrap();
    assert_eq!(row.entry.stamp.size, std::fs::metadata(path).unwrap().len());
}

#[test]
fn a_change_that_is_noticed_only_on_a_later_page_hides_no_thread() {
    let home = tempfile::tempdir().unwrap();
    // More than are looked at for changes with every list.
    let threads: Vec<_> = (0..60).map(|number| thread(home.path(), 1_741_064_767 + number)).collect();
    for (number, (_, path)) in threads.iter().enumerate() {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_741_064_767 + number as u64);
        std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let mut index = Index::open(home.path(), home.path()).unwrap();
    let mut query = ListQuery { sort: ThreadSortKey::UpdatedAt, limit: 20, ..ListQuery::new("mock") };
    assert_eq!(index.list(&query).unwrap().threads.len(), 20);
    std::fs::File::options().append(true).open(&threads[5].1).unwrap().write_all(b"{}\n").unwrap();
    let mut found = Vec::new();
    loop {
        let page = index.list(&query).unwrap();
        found.extend(page.threads.iter().map(StoredThread::id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    found.sort();
    let mut all: Vec<ThreadId> = threads.iter().map(|(id, _)| *id).collect();
    all.sort();
    assert_eq!(found, all);
}

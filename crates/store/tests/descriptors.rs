//! A process that has no file descriptor left. Each test lowers the limit of the whole process, so they take turns.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use loomd_store::{Error, FileStore, ListQuery, Position, Store, ThreadId};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod support;
use support::*;

static LIMIT: Mutex<()> = Mutex::new(());

/// Does the work with a lower limit.
fn limited<T>(current: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..before }).unwrap();
    let done = work();
    setrlimit(Resource::Nofile, before).unwrap();
    done
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    // Without a runtime nothing leaves this thread.
    let mut work = std::pin::pin!(work);
    match work.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => panic!("nothing here waits"),
    }
}

fn previews(store: &FileStore) -> (Vec<String>, usize) {
    let page = block_on(store.list(ListQuery::new("mock"))).unwrap();
    (page.threads.into_iter().filter_map(|thread| thread.preview).collect(), page.unreadable)
}

/// A home with a thread that is known and has no message, and its store.
fn known_thread(home: &std::path::Path) -> (FileStore, ThreadId, std::path::PathBuf) {
    let id = ThreadId::new();
    let path = place(home, id, BASE, false);
    write_thread(&path, &meta(id, BASE), &[]);
    // A folder that changed just now may change again unseen, and is read every time.
    for folder in path.ancestors().skip(1).take(4) {
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(BASE.unsigned_abs());
        std::fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }
    let store = store(home);
    assert_eq!(previews(&store), (Vec::new(), 0));
    assert_eq!(previews(&store), (Vec::new(), 0));
    (store, id, path)
}

#[test]
fn a_rollout_that_cannot_be_read_once_is_listed_when_it_can() {
    let _limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().unwrap();
    let (store, id, path) = known_thread(home.path());
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    limited(3, || {
        assert_eq!(previews(&store).0, Vec::<String>::new());
        let error = block_on(store.find(id, None)).unwrap_err();
        assert!(matches!(&error, Error::Storage { place, .. } if *place == path.display().to_string()), "{error}");
        assert!(error.to_string().contains("Too many open files"), "{error}");
    });
    assert_eq!(previews(&store), (vec!["hello".to_owned()], 0));
    assert_eq!(block_on(store.find(id, None)).unwrap().preview.as_deref(), Some("hello"));
    assert_eq!(previews(&support::store(home.path())).0, ["hello"], "also after a restart");
}

#[test]
fn a_list_counts_the_rollouts_that_cannot_be_read() {
    let _limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().unwrap();
    let (store, ..) = known_thread(home.path());
    // Looks like a file, and reading it fails.
    let id = ThreadId::new();
    let path = place(home.path(), id, BASE + 60, false);
    std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
    assert_eq!(previews(&store), (Vec::new(), 1));
    let error = block_on(store.find(id, None)).unwrap_err();
    assert!(matches!(&error, Error::Storage { place, .. } if *place == path.display().to_string()), "{error}");
    let restarted = support::store(home.path());
    assert_eq!(previews(&restarted), (Vec::new(), 1), "also after a restart");
    std::fs::remove_file(&path).unwrap();
    write_thread(&path, &meta(id, BASE + 60), &[user("found")]);
    assert_eq!(previews(&restarted), (vec!["found".to_owned()], 0));
}

#[test]
fn threads_are_read_and_written_with_the_reserve_when_all_other_descriptors_are_taken() {
    let _limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().unwrap();
    let (store, id, path) = known_thread(home.path());
    let reader = block_on(store.open(id)).unwrap();
    let mut writer = block_on(reader.writer()).unwrap();
    let taken: Vec<_> = limited(64, || std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect());
    limited(64, || {
        std::fs::File::open("/dev/null").unwrap_err();
        block_on(writer.append(batch(&[user("hello")]), Default::default())).unwrap();
        assert_eq!(previews(&store), (vec!["hello".to_owned()], 0));
        assert!(block_on(reader.records_after(Position::START, 100)).unwrap().bytes().len() > 10);
    });
    drop((taken, path));
}

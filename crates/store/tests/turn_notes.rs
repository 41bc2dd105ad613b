//! Notes about unfinished turns, in files and in memory.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use loomd_store::{FileStore, MemoryStore, Options, Store, ThreadId, TurnNotes};

fn notes(store: &dyn Store) -> &dyn TurnNotes {
    store.turn_notes().unwrap()
}

async fn check(store: &dyn Store, again: &dyn Store) {
    let (one, two) = (ThreadId::new(), ThreadId::new());
    assert_eq!(notes(store).threads().await.unwrap(), []);
    assert_eq!(notes(store).read(one).await.unwrap(), b"");
    notes(store).remove(one).await.unwrap();
    assert!(notes(store).add(one, b"lost\n".to_vec()).await.is_err());

    notes(store).replace(two, b"a\n".to_vec()).await.unwrap();
    notes(store).replace(one, b"b\nc\n".to_vec()).await.unwrap();
    notes(store).add(two, b"d\n".to_vec()).await.unwrap();
    assert_eq!(notes(again).threads().await.unwrap(), [one, two]);
    assert_eq!(notes(again).read(two).await.unwrap(), b"a\nd\n");
    assert_eq!(notes(again).read(one).await.unwrap(), b"b\nc\n");

    notes(again).replace(one, b"e\n".to_vec()).await.unwrap();
    assert_eq!(notes(store).read(one).await.unwrap(), b"e\n");
    notes(again).remove(one).await.unwrap();
    assert_eq!(notes(store).threads().await.unwrap(), [two]);
}

#[tokio::test]
async fn notes_in_files_are_read_by_another_process() {
    let home = tempfile::tempdir().unwrap();
    let open = || FileStore::new(Options { home: home.path().into(), sqlite_home: None });
    check(&open(), &open()).await;
}

#[tokio::test]
async fn notes_in_memory_are_shared_by_clones() {
    let store = MemoryStore::new();
    check(&store, &store.clone()).await;
}

#[tokio::test]
async fn files_that_are_no_notes_are_skipped() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("loomd/turns");
    std::fs::create_dir_all(&folder).unwrap();
    let id = ThreadId::new();
    for name in ["x.jsonl".into(), format!("{id}.new"), format!("{id}.jsonl.bak"), "readme".into()] {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    let store = FileStore::new(Options { home: home.path().into(), sqlite_home: None });
    assert_eq!(notes(&store).threads().await.unwrap(), []);
}

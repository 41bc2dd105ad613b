//! `fs/watch`: reports changes to clients, in batches.
//!
//! One thread owns all watches. It receives changes from the operating system, collects those of a watch for a while,
//! and delivers them as one notification. Only folders are watched at the operating system, so a watched file may be
//! replaced, removed or not exist yet.

mod folders;
mod interest;
mod thread;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};

use loomd_protocol::{AbsolutePathBuf, FsChangedNotification, FsWatchResponse};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::error::{FsError, Result};
use thread::{Input, WatchThread};

/// The connection that owns a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// Sends a notification to the owner of the watch.
pub type Deliver = Box<dyn Fn(Owner, FsChangedNotification) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// All watches of all clients.
pub struct Watches {
    /// The thread's input; the thread is started for the first watch.
    start: OnceLock<Sender<Input>>,
    deliver: std::sync::Mutex<Option<Deliver>>,
}

impl Watches {
    pub fn new(deliver: Deliver) -> Self {
        Self { start: OnceLock::new(), deliver: std::sync::Mutex::new(Some(deliver)) }
    }

    /// Watches a path, which need not exist. A folder is watched with its direct children. Without an id from the
    /// client one is generated.
    pub async fn watch(&self, owner: Owner, path: AbsolutePathBuf, id: Option<String>) -> Result<FsWatchResponse> {
        let watch_id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let (reply, answer) = oneshot::channel();
        let input = Input::Watch { owner, id: watch_id.clone(), path: path.clone(), reply };
        _ = self.thread().send(input);
        answer.await.map_err(|_| FsError::refused("watching is not available"))??;
        Ok(FsWatchResponse { watch_id, path })
    }

    /// Ends a watch, if it exists. Nothing is delivered for it once this returns.
    pub async fn unwatch(&self, owner: Owner, id: String) {
        if let Some(thread) = self.start.get() {
            let (reply, answer) = oneshot::channel();
            _ = thread.send(Input::Unwatch { owner, id, reply });
            _ = answer.await;
        }
    }

    /// Ends all watches of a disconnected client.
    pub fn disconnect(&self, owner: Owner) {
        if let Some(thread) = self.start.get() {
            _ = thread.send(Input::Disconnect { owner });
        }
    }

    fn thread(&self) -> &Sender<Input> {
        self.start.get_or_init(|| {
            let (sender, inputs) = mpsc::channel();
            let deliver = self.deliver.lock().ok().and_then(|mut deliver| deliver.take());
            if let Some(deliver) = deliver {
                let runtime = Handle::current();
                let deliver = move |owner, changed| runtime.block_on(deliver(owner, changed));
                let thread = WatchThread::new(inputs, &sender, Box::new(deliver));
                _ = std::thread::Builder::new().name("watch".into()).spawn(move || thread.run());
            }
            sender
        })
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        if let Some(thread) = self.start.get() {
            _ = thread.send(Input::Stop);
        }
    }
}

fn notification(id: &str, paths: BTreeSet<AbsolutePathBuf>) -> FsChangedNotification {
    FsChangedNotification { watch_id: id.into(), changed_paths: paths.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Mutex;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    struct WatchFixture {
        dir: tempfile::TempDir,
        watches: Watches,
        expect_changes: Mutex<UnboundedReceiver<(Owner, FsChangedNotification)>>,
    }

    fn fixture() -> WatchFixture {
        let (sender, expect_changes) = unbounded_channel();
        let sender = Arc::new(sender);
        let watches = Watches::new(Box::new(move |owner, changed| {
            _ = sender.send((owner, changed));
            Box::pin(std::future::ready(()))
        }));
        WatchFixture { dir: tempfile::tempdir().unwrap(), watches, expect_changes: Mutex::new(expect_changes) }
    }

    const ME: Owner = Owner(1);

    impl WatchFixture {
        fn at(&self, name: &str) -> AbsolutePathBuf {
            AbsolutePathBuf::new(self.dir.path().join(name)).unwrap()
        }

        async fn watch(&self, name: &str) -> String {
            self.watches.watch(ME, self.at(name), None).await.unwrap().watch_id
        }

        fn put(&self, name: &str) {
            fs::write(self.at(name), "x").unwrap();
        }

        /// Waits until the watch has reported all of these paths; others are ignored.
        async fn expect_changes(&self, id: &str, names: &[&str]) {
            let mut left: BTreeSet<_> = names.iter().map(|name| self.at(name)).collect();
            let mut expect_changes = self.expect_changes.lock().await;
            while !left.is_empty() {
                let next = tokio::time::timeout(Duration::from_secs(30), expect_changes.recv()).await;
                let (owner, changed) = next.unwrap_or_else(|_| panic!("no notification about {left:?}")).unwrap();
                assert_eq!(owner, ME);
                assert!(changed.changed_paths.is_sorted());
                if changed.watch_id == id {
                    changed.changed_paths.iter().for_each(|path| _ = left.remove(path));
                }
            }
        }
    }

    #[tokio::test]
    async fn every_changed_child_is_reported() {
        let fixture = fixture();
        let id = fixture.watch("").await;
        ["c", "a", "b", "a"].iter().for_each(|name| fixture.put(name));
        fixture.expect_changes(&id, &["a", "b", "c"]).await;
    }

    #[tokio::test]
    async fn a_file_is_reported_after_replacement_removal_and_recreation() {
        let fixture = fixture();
        fixture.put("HEAD");
        let id = fixture.watch("HEAD").await;
        for _ in 0..2 {
            fixture.put("HEAD.lock");
            fs::rename(fixture.at("HEAD.lock"), fixture.at("HEAD")).unwrap();
            fixture.expect_changes(&id, &["HEAD"]).await;
        }
        fs::remove_file(fixture.at("HEAD")).unwrap();
        fixture.expect_changes(&id, &["HEAD"]).await;
        fixture.put("HEAD");
        fixture.expect_changes(&id, &["HEAD"]).await;
    }

    #[tokio::test]
    async fn a_missing_path_is_reported_when_created() {
        let fixture = fixture();
        let id = fixture.watch("a/b/c").await;
        fs::create_dir_all(fixture.at("a/b")).unwrap();
        fixture.put("a/b/c");
        fixture.expect_changes(&id, &["a/b/c"]).await;
    }

    #[tokio::test]
    async fn a_folder_is_reported_after_recreation() {
        let fixture = fixture();
        fs::create_dir(fixture.at("d")).unwrap();
        let id = fixture.watch("d").await;
        fs::remove_dir(fixture.at("d")).unwrap();
        fixture.expect_changes(&id, &["d"]).await;
        fs::create_dir(fixture.at("d")).unwrap();
        fixture.put("d/x");
        fixture.expect_changes(&id, &["d/x"]).await;
        fixture.put("d/y");
        fixture.expect_changes(&id, &["d/y"]).await;
    }

    #[tokio::test]
    async fn a_folder_behind_a_link_is_reported_by_its_watched_path() {
        let fixture = fixture();
        fs::create_dir(fixture.at("real")).unwrap();
        std::os::unix::fs::symlink("real", fixture.at("link")).unwrap();
        let (real, link) = (fixture.watch("real").await, fixture.watch("link").await);
        fixture.put("real/x");
        let mut expect_changes = fixture.expect_changes.lock().await;
        let mut seen = std::collections::BTreeMap::new();
        while seen.len() < 2 {
            let changed = expect_changes.recv().await.unwrap().1;
            seen.insert(changed.watch_id, changed.changed_paths);
        }
        assert_eq!(seen, [(real, vec![fixture.at("real/x")]), (link, vec![fixture.at("link/x")])].into());
    }

    #[tokio::test]
    async fn replacing_a_file_does_not_report_temporary_files() {
        let fixture = fixture();
        fixture.put("f");
        let id = fixture.watch("").await;
        crate::write_file(&fixture.at("f"), "eA==").unwrap();
        let (_, changed) = fixture.expect_changes.lock().await.recv().await.unwrap();
        assert_eq!(changed, FsChangedNotification { watch_id: id, changed_paths: vec![fixture.at("f")] });
    }

    #[tokio::test]
    async fn watch_ids_are_per_client() {
        let fixture = fixture();
        let watch = |owner, id: &str| fixture.watches.watch(Owner(owner), fixture.at(""), Some(id.into()));
        assert_eq!(watch(2, "w").await.unwrap().watch_id, "w");
        assert_eq!(watch(2, "w").await.unwrap_err().to_string(), "watchId already exists: w");
        assert_eq!(watch(1, "w").await.unwrap().path, fixture.at(""));
        fixture.watches.unwatch(Owner(2), "w".into()).await;
        fixture.watches.unwatch(Owner(2), "unknown".into()).await;
        fixture.put("x");
        fixture.expect_changes("w", &["x"]).await;
        fixture.watches.disconnect(ME);
        watch(1, "w").await.unwrap();
        assert!(Path::new(&*fixture.at("x")).exists());
    }
}

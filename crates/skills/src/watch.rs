//! Changes below skill roots. One task watches each root once, however many subscribers it has, and notifies them of
//! the first change at once and of further ones at most every [`PAUSE`].

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use loomd_files::{Owner, Watches};
use loomd_protocol::AbsolutePathBuf;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::walk::walk;

/// The shortest time between two notifications of a subscriber.
pub const PAUSE: Duration = Duration::from_secs(10);

/// Called with the subscribers whose skills have changed.
pub type OnChange<K> = Box<dyn Fn(Vec<K>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The watched roots of all subscribers. Dropping it ends its task.
pub struct Watch<K: Copy + Eq + Hash + Send + 'static> {
    shared: Arc<Shared<K>>,
    on_change: Mutex<Option<OnChange<K>>>,
}

/// A subscription. It ends when this is dropped.
pub struct WatchGuard<K: Copy + Eq + Hash + Send + 'static> {
    key: K,
    shared: Weak<Shared<K>>,
}

struct Shared<K> {
    requests: Mutex<Requests<K>>,
    wake: Notify,
}

/// What the task has not seen yet.
struct Requests<K> {
    /// In the order in which they came: a key may be used again.
    changes: Vec<Change<K>>,
    /// Roots with a change, by the owner of their watches.
    changed: HashSet<Owner>,
    /// Roots whose watches are in place.
    live: HashSet<PathBuf>,
    closed: bool,
}

/// A change of the subscribers.
enum Change<K> {
    Added(Subscription<K>),
    Removed(K),
}

struct Subscription<K> {
    key: K,
    /// The roots, with what was below those that were not watched yet.
    roots: Vec<(PathBuf, Option<Snapshot>)>,
}

/// Files of a root that are looked at. With more, every event counts as a change.
const MAX_FILES: usize = 4096;

/// What is below a root: files with their times of change and their sizes, and folders.
#[derive(Debug, Default, PartialEq, Eq)]
struct Snapshot {
    files: Vec<(PathBuf, (i64, i64), u64)>,
    folders: HashSet<PathBuf>,
    /// There are more files than were looked at.
    is_cut: bool,
}

impl<K: Copy + Eq + Hash + Send + 'static> Watch<K> {
    /// Nothing is started before the first subscription.
    pub fn new(on_change: OnChange<K>) -> Self {
        let requests = Requests { changes: Vec::new(), changed: HashSet::new(), live: HashSet::new(), closed: false };
        let shared = Shared { requests: Mutex::new(requests), wake: Notify::new() };
        Self { shared: Arc::new(shared), on_change: Mutex::new(Some(on_change)) }
    }

    /// Subscribes to roots, which need not exist. Every change after this returns is reported. Blocks for as long as it
    /// takes to look at roots that are not watched yet; to be called in a runtime.
    pub fn subscribe(&self, key: K, roots: impl IntoIterator<Item = PathBuf>) -> WatchGuard<K> {
        if let Some(on_change) = self.on_change.lock().take() {
            let watches = {
                let shared = Arc::downgrade(&self.shared);
                Watches::new(Box::new(move |owner, _| {
                    if let Some(shared) = shared.upgrade() {
                        shared.requests.lock().changed.insert(owner);
                        shared.wake.notify_one();
                    }
                    Box::pin(std::future::ready(()))
                }))
            };
            let shared = Arc::clone(&self.shared);
            let task = Task { shared, watches, on_change, subscribers: HashMap::new(), roots: Vec::new(), owners: 0 };
            tokio::spawn(task.run());
        }
        let live: HashSet<PathBuf> = self.shared.requests.lock().live.clone();
        let look = |root: PathBuf| {
            let snapshot = (!live.contains(&root)).then(|| snapshot(&root));
            (root, snapshot)
        };
        let roots = roots.into_iter().map(look).collect();
        self.shared.requests.lock().changes.push(Change::Added(Subscription { key, roots }));
        self.shared.wake.notify_one();
        WatchGuard { key, shared: Arc::downgrade(&self.shared) }
    }
}

impl<K: Copy + Eq + Hash + Send + 'static> Drop for Watch<K> {
    fn drop(&mut self) {
        self.shared.requests.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

impl<K: Copy + Eq + Hash + Send + 'static> Drop for WatchGuard<K> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.requests.lock().changes.push(Change::Removed(self.key));
            shared.wake.notify_one();
        }
    }
}

/// Hidden entries of the root are not part of it: they are temporary, or roots of their own.
fn snapshot(root: &Path) -> Snapshot {
    let folders = walk(root, true).folders;
    let entries = folders.iter().flat_map(|folder| folder.read_dir().into_iter().flatten().flatten());
    let mut files =
        entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")).filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(|metadata| !metadata.is_dir())?;
            Some((entry.path(), (metadata.ctime(), metadata.ctime_nsec()), metadata.len()))
        });
    let mut known: Vec<_> = files.by_ref().take(MAX_FILES).collect();
    let is_cut = files.next().is_some();
    known.sort_unstable();
    Snapshot { files: known, folders: folders.into_iter().collect(), is_cut }
}

/// A root that is watched.
struct WatchedRoot {
    path: PathBuf,
    /// The owner of its watches.
    owner: Owner,
    users: usize,
    /// The folders that are watched.
    folders: HashSet<PathBuf>,
    /// What its subscribers were notified of.
    seen: Snapshot,
}

struct Subscriber {
    roots: Vec<PathBuf>,
    notified: Option<Instant>,
    /// A change has not been reported.
    pending: bool,
}

struct Task<K> {
    shared: Arc<Shared<K>>,
    watches: Watches,
    on_change: OnChange<K>,
    subscribers: HashMap<K, Subscriber>,
    roots: Vec<WatchedRoot>,
    /// The number of owners that were given out.
    owners: u64,
}

impl<K: Copy + Eq + Hash + Send + 'static> Task<K> {
    async fn run(mut self) {
        loop {
            let due =
                self.subscribers.values().filter(|subscriber| subscriber.pending).filter_map(Subscriber::due).min();
            tokio::select! {
                () = self.shared.wake.notified() => {}
                () = until(due) => {}
            }
            let (changes, changed) = {
                let mut requests = self.shared.requests.lock();
                if requests.closed {
                    return;
                }
                let Requests { changes, changed, .. } = &mut *requests;
                (std::mem::take(changes), std::mem::take(changed))
            };
            for change in changes {
                match change {
                    Change::Added(subscription) => self.add(subscription).await,
                    Change::Removed(key) => self.remove(key),
                }
            }
            for owner in changed {
                if let Some(at) = self.roots.iter().position(|root| root.owner == owner) {
                    let Some(now) = self.watch_folders(at).await else { continue };
                    let root = &mut self.roots[at];
                    // An event need not mean a change: a folder above was created and removed again, for example.
                    if now.is_cut || now != root.seen {
                        root.seen = now;
                        let path = root.path.clone();
                        self.mark(&path);
                    }
                }
            }
            // Subscribers that came meanwhile are notified of the same change together with the others.
            if self.shared.requests.lock().changes.is_empty() {
                self.notify().await;
            }
        }
    }

    async fn add(&mut self, subscription: Subscription<K>) {
        let Subscription { key, roots } = subscription;
        // A subscriber that subscribes again has new roots.
        self.remove(key);
        let paths = roots.iter().map(|(path, _)| path.clone()).collect();
        self.subscribers.insert(key, Subscriber { roots: paths, notified: None, pending: false });
        for (path, before) in roots {
            let known = self.roots.iter().position(|root| root.path == path);
            // It was watched when the subscriber came, and no longer.
            let is_unknown = known.is_none() && before.is_none();
            let at = match known {
                Some(at) => at,
                None => {
                    self.owners += 1;
                    let owner = Owner(self.owners);
                    let (folders, seen) = Default::default();
                    self.roots.push(WatchedRoot { path: path.clone(), owner, users: 0, folders, seen });
                    let at = self.roots.len() - 1;
                    self.roots[at].seen = self.watch_folders(at).await.unwrap_or_default();
                    self.shared.requests.lock().live.insert(path.clone());
                    at
                }
            };
            self.roots[at].users += 1;
            let has_changed = before.map_or(is_unknown, |before| before != self.roots[at].seen);
            if let Some(subscriber) = self.subscribers.get_mut(&key) {
                subscriber.pending |= has_changed;
            }
        }
    }

    fn remove(&mut self, key: K) {
        let Some(subscriber) = self.subscribers.remove(&key) else { return };
        for path in subscriber.roots {
            let Some(at) = self.roots.iter().position(|root| root.path == path) else { continue };
            self.roots[at].users -= 1;
            if self.roots[at].users == 0 {
                let root = self.roots.swap_remove(at);
                self.shared.requests.lock().live.remove(&root.path);
                self.watches.disconnect(root.owner);
            }
        }
    }

    /// Watches the root and the folders below it, and returns what is there; `None` if it could not be looked at. New
    /// folders are looked at again once they are watched, as others may have been created in them meanwhile.
    async fn watch_folders(&mut self, at: usize) -> Option<Snapshot> {
        /// Folders that keep appearing are found with the next change.
        const MAX_LOOKS: usize = 4;
        let mut now = None;
        for _ in 0..MAX_LOOKS {
            let path = self.roots[at].path.clone();
            let look = spawn_blocking(move || snapshot(&path)).await.ok()?;
            let root = &mut self.roots[at];
            let mut found = look.folders.clone();
            now = Some(look);
            found.insert(root.path.clone());
            for gone in root.folders.difference(&found) {
                self.watches.unwatch(root.owner, gone.to_string_lossy().into_owned()).await;
            }
            let mut is_new = false;
            for folder in found.difference(&root.folders) {
                is_new = true;
                let id = folder.to_string_lossy().into_owned();
                let Some(path) = AbsolutePathBuf::new(folder) else { continue };
                if let Err(error) = self.watches.watch(root.owner, path, Some(id)).await {
                    tracing::debug!(%error, folder = %folder.display(), "cannot watch a folder of skills");
                }
            }
            root.folders = found;
            if !is_new {
                break;
            }
        }
        now
    }

    /// Marks the subscribers of a root as not notified yet.
    fn mark(&mut self, root: &Path) {
        for subscriber in self.subscribers.values_mut() {
            subscriber.pending |= subscriber.roots.iter().any(|path| path == root);
        }
    }

    /// Notifies the subscribers that are due.
    async fn notify(&mut self) {
        let now = Instant::now();
        let mut due = Vec::new();
        for (key, subscriber) in &mut self.subscribers {
            if subscriber.pending && subscriber.due().is_none_or(|due| due <= now) {
                (subscriber.pending, subscriber.notified) = (false, Some(now));
                due.push(*key);
            }
        }
        if !due.is_empty() {
            (self.on_change)(due).await;
        }
    }
}

impl Subscriber {
    /// When it may be notified again; `None` if it has not been.
    fn due(&self) -> Option<Instant> {
        self.notified.map(|notified| notified + PAUSE)
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio::time::timeout;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        watch: Watch<u32>,
        changes: UnboundedReceiver<Vec<u32>>,
    }

    fn fixture() -> Fixture {
        let (sender, changes) = unbounded_channel();
        let watch = Watch::new(Box::new(move |mut keys: Vec<u32>| {
            keys.sort_unstable();
            _ = sender.send(keys);
            Box::pin(std::future::ready(())) as Pin<Box<dyn Future<Output = ()> + Send>>
        }));
        Fixture { dir: tempfile::tempdir().unwrap(), watch, changes }
    }

    impl Fixture {
        fn root(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn put(&self, folder: &str, text: &str) {
            fs::create_dir_all(self.root(folder)).unwrap();
            fs::write(self.root(folder).join("SKILL.md"), text).unwrap();
        }

        async fn changed(&mut self) -> Vec<u32> {
            timeout(Duration::from_secs(60), self.changes.recv()).await.expect("no notification").unwrap()
        }
    }

    #[tokio::test]
    async fn a_change_right_after_the_subscription_is_reported() {
        let mut fixture = fixture();
        fixture.put("a/one", "1");
        let _guard = fixture.watch.subscribe(1, [fixture.root("a"), fixture.root("missing")]);
        fixture.put("a/two", "2");
        assert_eq!(fixture.changed().await, [1]);
    }

    #[tokio::test]
    async fn only_subscribers_of_the_changed_root_are_notified() {
        let mut fixture = fixture();
        fixture.put("a/one", "1");
        fixture.put("b/one", "1");
        let _guards = [
            fixture.watch.subscribe(1, [fixture.root("a")]),
            fixture.watch.subscribe(2, [fixture.root("b")]),
            fixture.watch.subscribe(3, [fixture.root("b"), fixture.root("a")]),
        ];
        fixture.put("b/one", "other");
        let mut notified = fixture.changed().await;
        while notified.len() < 2 {
            notified.extend(fixture.changed().await);
        }
        assert_eq!(notified, [2, 3]);
    }

    #[tokio::test]
    async fn events_that_change_no_skill_are_not_reported() {
        let mut fixture = fixture();
        fixture.put("a/one", "1");
        fixture.put("b/one", "1");
        let _guards = [
            fixture.watch.subscribe(1, [fixture.root("x/skills"), fixture.root("a")]),
            fixture.watch.subscribe(2, [fixture.root("b")]),
        ];
        // Wait until everything is watched.
        fixture.put("b/one", "other");
        assert_eq!(fixture.changed().await, [2]);
        for _ in 0..20 {
            fs::create_dir(fixture.root("x")).unwrap();
            fs::remove_dir(fixture.root("x")).unwrap();
            fs::write(fixture.root("a/.system-1"), "").unwrap();
            fs::remove_file(fixture.root("a/.system-1")).unwrap();
        }
        let _third = fixture.watch.subscribe(3, [fixture.root("c")]);
        fixture.put("c/one", "1");
        assert_eq!(fixture.changed().await, [3]);
        fs::write(fixture.root("a/one/notes.md"), "1").unwrap();
        assert_eq!(fixture.changed().await, [1]);
    }

    #[test]
    fn two_looks_at_more_files_than_are_kept_are_equal() {
        let fixture = fixture();
        for folder in ["a/one", "a/two", "a/three"] {
            fixture.put(folder, "1");
            (0..MAX_FILES / 2).for_each(|number| fs::write(fixture.root(folder).join(number.to_string()), "").unwrap());
        }
        let look = snapshot(&fixture.root("a"));
        assert!(look.is_cut && look.files.len() == MAX_FILES);
        assert!(look == snapshot(&fixture.root("a")));
        assert!(!snapshot(&fixture.root("a/one")).is_cut);
    }

    #[tokio::test]
    async fn a_key_that_is_used_again_is_notified() {
        let mut fixture = fixture();
        let first = fixture.watch.subscribe(1, [fixture.root("a")]);
        drop(first);
        let _second = fixture.watch.subscribe(1, [fixture.root("a")]);
        fixture.put("a/one", "1");
        assert_eq!(fixture.changed().await, [1]);
    }

    #[tokio::test]
    async fn a_root_that_is_created_later_is_watched_to_its_depth() {
        let mut fixture = fixture();
        let first = fixture.watch.subscribe(1, [fixture.root("x/skills")]);
        fixture.put("x/skills/deep/er/one", "1");
        assert_eq!(fixture.changed().await, [1]);
        drop(first);
        // A new subscriber has no pause.
        let _second = fixture.watch.subscribe(2, [fixture.root("x/skills")]);
        fixture.put("x/skills/deep/er/one", "more");
        assert_eq!(fixture.changed().await, [2]);
    }
}

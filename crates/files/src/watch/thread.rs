//! [`WatchThread`]: the thread that owns the watches.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use loomd_protocol::{AbsolutePathBuf, FsChangedNotification};
use tokio::sync::oneshot;

use super::folders::Folders;
use super::interest::{Interest, Relation, interests};
use super::{Owner, notification};
use crate::error::{FsError, Result};
use crate::write::is_temporary;

/// Time from the first change of a watch to its notification.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// More changed paths than this in one batch are reported as a change of the watched path.
const MAX_BATCH: usize = 4 * 1024;

/// Watches per client. Each takes resources of the operating system.
const MAX_WATCHES: usize = 4 * 1024;

/// How often the folders of a watch are computed again until they are stable.
const MAX_LOOKS: usize = 8;

pub(super) enum Input {
    Watch { owner: Owner, id: String, path: AbsolutePathBuf, reply: oneshot::Sender<Result<()>> },
    Unwatch { owner: Owner, id: String, reply: oneshot::Sender<()> },
    Disconnect { owner: Owner },
    Change(Change),
    Stop,
}

/// A change reported by the operating system.
pub(super) enum Change {
    /// `structural` if names were created or removed.
    Paths { paths: Vec<PathBuf>, structural: bool },
    /// Some changes were lost.
    Anything,
}

type WatchKey = (Owner, String);

struct Watch {
    path: AbsolutePathBuf,
    interests: Vec<Interest>,
    /// Paths to report; if not empty, the watch is in [`WatchThread::due`].
    changed: BTreeSet<AbsolutePathBuf>,
}

pub(super) struct WatchThread {
    inputs: Receiver<Input>,
    queued: Arc<AtomicUsize>,
    folders: Folders,
    deliver: Box<dyn Fn(Owner, FsChangedNotification) + Send>,
    watches: BTreeMap<WatchKey, Watch>,
    /// The watches with an interest in a folder.
    by_folder: HashMap<PathBuf, HashSet<WatchKey>>,
    /// When the changes of a watch are delivered, earliest first.
    due: VecDeque<(Instant, WatchKey)>,
}

impl WatchThread {
    pub fn new(
        inputs: Receiver<Input>,
        sender: &Sender<Input>,
        deliver: Box<dyn Fn(Owner, FsChangedNotification) + Send>,
    ) -> Self {
        let queued = Arc::new(AtomicUsize::new(0));
        let folders = Folders::new(sender, Arc::clone(&queued));
        Self {
            inputs,
            queued,
            folders,
            deliver,
            watches: BTreeMap::new(),
            by_folder: HashMap::new(),
            due: VecDeque::new(),
        }
    }

    pub fn run(mut self) {
        loop {
            let input = match self.due.front() {
                Some((due, _)) => self.inputs.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => self.inputs.recv().map_err(RecvTimeoutError::from),
            };
            match input {
                Ok(Input::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(input) => self.take(input),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.deliver_due();
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Watch { owner, id, path, reply } => _ = reply.send(self.watch(owner, id, path)),
            Input::Unwatch { owner, id, reply } => {
                self.unwatch(&(owner, id));
                _ = reply.send(());
            }
            Input::Disconnect { owner } => {
                let theirs: Vec<WatchKey> = self.keys_of(owner).cloned().collect();
                theirs.iter().for_each(|key| self.unwatch(key));
            }
            Input::Stop => {}
            Input::Change(change) => {
                self.queued.fetch_sub(1, Ordering::Relaxed);
                match change {
                    Change::Paths { paths, structural } => {
                        paths.into_iter().for_each(|path| self.changed(path, structural));
                    }
                    Change::Anything => self.anything_changed(),
                }
            }
        }
    }

    fn keys_of(&self, owner: Owner) -> impl Iterator<Item = &WatchKey> {
        self.watches.range((owner, String::new())..).map(|(key, _)| key).take_while(move |key| key.0 == owner)
    }

    fn watch(&mut self, owner: Owner, id: String, path: AbsolutePathBuf) -> Result<()> {
        let key = (owner, id);
        if self.watches.contains_key(&key) {
            return Err(FsError::refused(format!("watchId already exists: {}", key.1)));
        }
        if self.keys_of(owner).count() >= MAX_WATCHES {
            return Err(FsError::refused(format!("too many watches: limit is {MAX_WATCHES}")));
        }
        let watch = Watch { path, interests: Vec::new(), changed: BTreeSet::new() };
        self.watches.insert(key.clone(), watch);
        self.update_folders(&key);
        Ok(())
    }

    fn unwatch(&mut self, key: &WatchKey) {
        if let Some(watch) = self.watches.remove(key) {
            watch.interests.iter().for_each(|interest| self.remove_interest(key, interest));
        }
    }

    /// Watches the folders for a path. They may change meanwhile, so this repeats until they are stable.
    fn update_folders(&mut self, key: &WatchKey) {
        for _ in 0..MAX_LOOKS {
            let Some(watch) = self.watches.get_mut(key) else { return };
            let now = interests(&watch.path);
            if now == watch.interests {
                return;
            }
            let before = std::mem::replace(&mut watch.interests, now.clone());
            now.iter().for_each(|interest| self.folders.add(&interest.folder));
            before.iter().for_each(|interest| self.remove_interest(key, interest));
            for interest in now {
                self.by_folder.entry(interest.folder).or_default().insert(key.clone());
            }
        }
    }

    fn remove_interest(&mut self, key: &WatchKey, interest: &Interest) {
        self.folders.remove(&interest.folder);
        if let Some(keys) = self.by_folder.get_mut(&interest.folder) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_folder.remove(&interest.folder);
            }
        }
    }

    fn changed(&mut self, changed: PathBuf, structural: bool) {
        if changed.file_name().and_then(|name| name.to_str()).is_some_and(is_temporary) {
            return;
        }
        let places = [changed.parent(), Some(changed.as_path())].into_iter().flatten();
        let keys: HashSet<WatchKey> = places.filter_map(|place| self.by_folder.get(place)).flatten().cloned().collect();
        if structural && self.by_folder.contains_key(&changed) {
            self.folders.renew(&changed);
        }
        for key in keys {
            let Some(watch) = self.watches.get_mut(&key) else { continue };
            let meanings: Vec<_> = watch
                .interests
                .iter()
                .filter_map(|interest| interest.effect(&watch.path, &changed, structural))
                .collect();
            let recheck = meanings.iter().any(|effect| effect.recheck);
            self.record(&key, meanings.into_iter().filter_map(|effect| effect.report).collect());
            if recheck {
                self.recheck(&key);
            }
        }
    }

    /// Updates the folders; a path that newly exists has changed, and so have its children.
    fn recheck(&mut self, key: &WatchKey) {
        let Some(watch) = self.watches.get(key) else { return };
        let before = watch.interests.clone();
        self.update_folders(key);
        let Some(watch) = self.watches.get(key) else { return };
        let is_new = |interest: &&Interest| !before.contains(interest);
        let mut changed = Vec::new();
        for interest in watch.interests.iter().filter(is_new) {
            match &interest.of {
                Relation::Children => {
                    changed.push(watch.path.clone());
                    let children = std::fs::read_dir(&interest.folder).into_iter().flatten().flatten();
                    changed.extend(
                        children.take(MAX_BATCH).map(|child| AbsolutePathBuf::resolve(&watch.path, child.file_name())),
                    );
                }
                Relation::Itself(_) | Relation::Target(_) if watch.path.exists() => changed.push(watch.path.clone()),
                _ => {}
            }
        }
        self.record(key, changed);
    }

    fn anything_changed(&mut self) {
        let keys: Vec<WatchKey> = self.watches.keys().cloned().collect();
        for key in keys {
            self.update_folders(&key);
            if let Some(watch) = self.watches.get(&key) {
                self.record(&key, vec![watch.path.clone()]);
            }
        }
    }

    fn record(&mut self, key: &WatchKey, paths: Vec<AbsolutePathBuf>) {
        let Some(watch) = self.watches.get_mut(key).filter(|_| !paths.is_empty()) else { return };
        if watch.changed.is_empty() {
            self.due.push_back((Instant::now() + BATCH_TIME, key.clone()));
        }
        watch.changed.extend(paths);
        if watch.changed.len() > MAX_BATCH {
            watch.changed = BTreeSet::from([watch.path.clone()]);
        }
    }

    /// Delivers what is due.
    fn deliver_due(&mut self) {
        let now = Instant::now();
        while let Some((_, (owner, id))) = self.due.pop_front_if(|(due, _)| *due <= now) {
            // The id may have been reused meanwhile.
            let key = (owner, id);
            let Some(watch) = self.watches.get_mut(&key).filter(|watch| !watch.changed.is_empty()) else { continue };
            (self.deliver)(owner, notification(&key.1, std::mem::take(&mut watch.changed)));
        }
    }
}

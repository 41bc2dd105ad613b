//! [`FolderWatcher`]: reports changed folders, so that a tree need not be scanned.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{Event, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

use crate::walk::is_rules_file;

/// More changed folders than this count as "everything changed".
const MAX_CHANGED: usize = 256;

/// Watched folders, and their changes.
pub(crate) struct FolderWatcher {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    changes: Arc<Mutex<Changes>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub folders: BTreeSet<PathBuf>,
    /// Whether changes may have been missed.
    pub everything: bool,
}

impl FolderWatcher {
    /// `wake` is called when there are changes to take.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Option<Self> {
        let changes: Arc<Mutex<Changes>> = Arc::default();
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let (shared, call_wake) = (Arc::clone(&changes), Arc::clone(&wake));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if shared.lock().record(event) {
                call_wake();
            }
        });
        Some(Self { watcher: watcher.ok()?, folders: BTreeSet::new(), changes, wake })
    }

    /// Watches exactly these folders. New ones count as changed, as earlier changes were not observed. Returns false
    /// if the operating system refuses one.
    pub fn watch(&mut self, folders: Vec<PathBuf>) -> bool {
        let wanted: BTreeSet<PathBuf> = folders.into_iter().collect();
        for gone in self.folders.difference(&wanted) {
            _ = self.watcher.unwatch(gone);
        }
        for new in wanted.difference(&self.folders) {
            // One that is already gone is reported by its parent.
            if self.watcher.watch(new, RecursiveMode::NonRecursive).is_err() && new.exists() {
                return false;
            }
        }
        let new: Vec<PathBuf> = wanted.difference(&self.folders).cloned().collect();
        self.folders = wanted;
        if !new.is_empty() {
            self.changes.lock().add(new);
            (self.wake)();
        }
        true
    }

    pub fn take(&self) -> Changes {
        std::mem::take(&mut self.changes.lock())
    }
}

impl Changes {
    /// Returns whether the event is relevant.
    fn record(&mut self, event: notify::Result<Event>) -> bool {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            _ => {
                self.everything = true;
                return true;
            }
        };
        let content_only = match event.kind {
            EventKind::Access(_) => return false,
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => true,
            _ => false,
        };
        let matters = |path: &&PathBuf| !content_only || path.to_str().is_some_and(is_rules_file);
        let folders = event.paths.iter().filter(matters).filter_map(|path| path.parent());
        let changed: Vec<_> = folders.map(Path::to_path_buf).collect();
        let matters = !changed.is_empty();
        self.add(changed);
        matters
    }

    fn add(&mut self, changed: Vec<PathBuf>) {
        self.folders.extend(changed);
        if self.folders.len() > MAX_CHANGED {
            self.folders.clear();
            self.everything = true;
        }
    }
}

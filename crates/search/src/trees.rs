//! [`Trees`]: a cache of trees. A tree stays for a while after its last use, so that the next query only has to
//! detect changes.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loomd_protocol::FuzzyFileSearchResult;
use parking_lot::Mutex;

use crate::index::Index;
use crate::roots::{Root, resolve, search};
use crate::tree::Tree;

/// Number of cached trees that are not in use; each may be large.
const MAX_IDLE: usize = 8;

/// How long an unused tree is cached.
const IDLE_TIME: Duration = Duration::from_secs(5 * 60);

/// The trees of all clients.
pub struct Trees {
    cwd: PathBuf,
    kept: Mutex<HashMap<PathBuf, CachedTree>>,
    evicting: AtomicBool,
}

struct CachedTree {
    tree: Arc<SharedTree>,
    used: Instant,
}

/// A tree, and its last index for readers that do not wait for a refresh.
pub(crate) struct SharedTree {
    tree: Mutex<Tree>,
    index: Mutex<Arc<Index>>,
}

impl Trees {
    /// Relative roots are resolved against `cwd`.
    pub fn new(cwd: PathBuf) -> Self {
        Self { cwd, kept: Mutex::default(), evicting: AtomicBool::new(false) }
    }

    /// The best matches on the current disk. Blocks.
    pub fn search(&self, query: &str, roots: &[String], cancelled: &AtomicBool) -> Vec<FuzzyFileSearchResult> {
        if query.is_empty() {
            return Vec::new();
        }
        let indexed: Vec<_> = self
            .open(roots)
            .into_iter()
            .map(|(root, tree)| {
                tree.refresh(cancelled);
                (root, tree.index())
            })
            .collect();
        search(query, &indexed, cancelled)
    }

    pub(crate) fn open(&self, roots: &[String]) -> Vec<(Root, Arc<SharedTree>)> {
        let mut kept = self.kept.lock();
        evict(&mut kept);
        let used = Instant::now();
        let opened = resolve(roots, &self.cwd).into_iter().map(|root| {
            let entry = kept.entry(root.path.clone());
            let kept = entry.or_insert_with(|| CachedTree { tree: Arc::new(SharedTree::new(root.path.clone())), used });
            kept.used = used;
            (root, Arc::clone(&kept.tree))
        });
        opened.collect()
    }

    /// Starts a task that evicts unused trees, until none is left.
    pub fn start_eviction(self: &Arc<Self>) {
        if self.evicting.swap(true, Ordering::Relaxed) {
            return;
        }
        let trees = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE_TIME / 4).await;
                let mut kept = trees.kept.lock();
                evict(&mut kept);
                if kept.is_empty() {
                    trees.evicting.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
    }
}

fn evict(kept: &mut HashMap<PathBuf, CachedTree>) {
    let is_free = |kept: &CachedTree| Arc::strong_count(&kept.tree) == 1;
    kept.retain(|_, kept| !is_free(kept) || kept.used.elapsed() < IDLE_TIME);
    while kept.len() >= MAX_IDLE {
        let oldest = kept.iter().filter(|(_, kept)| is_free(kept)).min_by_key(|(_, kept)| kept.used);
        let Some(root) = oldest.map(|(root, _)| root.clone()) else { return };
        kept.remove(&root);
    }
}

impl SharedTree {
    fn new(root: PathBuf) -> Self {
        Self { tree: Mutex::new(Tree::new(root)), index: Mutex::default() }
    }

    /// The index of the last refresh.
    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.lock())
    }

    /// Detects changes everywhere. Returns whether there were any.
    pub fn refresh(&self, cancelled: &AtomicBool) -> bool {
        self.change(|tree| tree.refresh(cancelled))
    }

    /// Detects changes in some folders only.
    pub fn refresh_folders(&self, folders: &BTreeSet<PathBuf>, cancelled: &AtomicBool) -> bool {
        self.change(|tree| tree.refresh_folders(folders, cancelled))
    }

    /// The folders of the tree, unless there are more than `at_most`.
    pub fn folders(&self, at_most: usize) -> Option<Vec<PathBuf>> {
        let tree = self.tree.lock();
        (tree.folder_count() <= at_most).then(|| tree.folders().collect())
    }

    fn change(&self, refresh: impl FnOnce(&mut Tree) -> bool) -> bool {
        let mut tree = self.tree.lock();
        let changed = refresh(&mut tree);
        if changed {
            *self.index.lock() = tree.index();
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_query_sees_changes() {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::new(dir.path().into());
        let roots = [".".to_owned()];
        let find = |query: &str| -> Vec<String> {
            let found = trees.search(query, &roots, &AtomicBool::new(false));
            found.into_iter().map(|found| found.path).collect()
        };
        assert_eq!(find("needle"), [""; 0]);
        std::fs::write(dir.path().join("needle"), "").unwrap();
        assert_eq!(find("needle"), ["needle"]);
        std::fs::rename(dir.path().join("needle"), dir.path().join("needles")).unwrap();
        assert_eq!(find("needle"), ["needles"]);
    }

    #[test]
    fn the_number_of_cached_trees_is_bounded() {
        let trees = Trees::new("/".into());
        let in_use = trees.open(&["/none/used".into()]);
        for number in 0..3 * MAX_IDLE {
            trees.open(&[format!("/none/{number}")]);
        }
        let kept = trees.kept.lock();
        assert!(kept.len() <= MAX_IDLE);
        assert!(kept.contains_key(&in_use[0].0.path));
    }
}

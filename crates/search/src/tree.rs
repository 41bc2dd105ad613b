//! [`Tree`]: the files below one folder, kept current. The disk is walked once; then only folders with a new
//! modification time, or those reported by a watcher, are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::index::{FoundPath, Index};
use crate::stamp::Stamp;
use crate::threads;
use crate::walk::{Listing, is_rules_file, list, walk};

/// With more changed folders than this a new walk is faster than reading them one by one.
const MAX_READ: usize = 256;

/// Fewer folders than this are checked faster by one thread.
const WORTH_A_THREAD: usize = 1024;

#[derive(Default)]
pub(crate) struct Tree {
    root: PathBuf,
    index: Arc<Index>,
    folders: BTreeMap<String, Stamp>,
    rules: Vec<(PathBuf, Stamp)>,
    /// Whether the disk was walked to the end.
    complete: bool,
}

impl Tree {
    pub fn new(root: PathBuf) -> Self {
        Self { root, ..Self::default() }
    }

    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index)
    }

    /// The folders below the root, and the root.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.keys().map(|folder| self.root.join(folder))
    }

    pub fn folder_count(&self) -> usize {
        self.folders.len()
    }

    /// Updates the index to the current state of the disk. Returns whether it changed.
    pub fn refresh(&mut self, cancelled: &AtomicBool) -> bool {
        if !self.complete || self.rules.iter().any(|(file, stamp)| !stamp.is_current(file)) {
            return self.walk(cancelled);
        }
        let changed = self.changed_folders();
        self.update(changed, cancelled)
    }

    /// Like [`refresh`](Self::refresh), for a known set of changed folders.
    pub fn refresh_folders(&mut self, changed: &BTreeSet<PathBuf>, cancelled: &AtomicBool) -> bool {
        if !self.complete || self.rules.iter().any(|(file, stamp)| !stamp.is_current(file)) {
            return self.walk(cancelled);
        }
        let relative = |folder: &PathBuf| Some(folder.strip_prefix(&self.root).ok()?.to_str()?.to_owned());
        let known = changed.iter().filter_map(relative).filter(|folder| self.folders.contains_key(folder)).collect();
        self.update(known, cancelled)
    }

    fn walk(&mut self, cancelled: &AtomicBool) -> bool {
        let Some(listing) = walk(&self.root, "", cancelled) else { return false };
        self.index = Arc::new(Index::new(listing.found));
        self.folders = listing.folders.into_iter().collect();
        self.rules = listing.rules;
        // Without the root there is no folder whose time would show a change.
        self.complete = self.folders.contains_key("");
        true
    }

    fn changed_folders(&self) -> Vec<String> {
        let folders: Vec<_> = self.folders.iter().collect();
        let parts = (folders.len() / WORTH_A_THREAD).clamp(1, threads());
        let size = folders.len().div_ceil(parts).max(1);
        let look = |part: &[(&String, &Stamp)]| -> Vec<String> {
            let changed = part.iter().filter(|(folder, stamp)| !stamp.is_current(&self.at(folder)));
            changed.map(|(folder, _)| (*folder).clone()).collect()
        };
        std::thread::scope(|scope| {
            let parts: Vec<_> = folders.chunks(size).map(|part| scope.spawn(move || look(part))).collect();
            parts.into_iter().filter_map(|part| part.join().ok()).flatten().collect()
        })
    }

    fn update(&mut self, changed: Vec<String>, cancelled: &AtomicBool) -> bool {
        if changed.is_empty() {
            return false;
        }
        if changed.len() > MAX_READ {
            return self.walk(cancelled);
        }
        let mut gone = BTreeSet::new();
        let mut added = Listing::default();
        for folder in changed {
            let stamp = Stamp::take(&self.at(&folder));
            let listing = list(&self.root, &folder);
            added.rules.extend(listing.rules);
            let now: BTreeMap<String, bool> =
                listing.found.into_iter().map(|found| (found.path, found.is_dir)).collect();
            let before: BTreeMap<&str, bool> =
                self.index.children(&folder).map(|path| (path.text, path.is_dir)).collect();
            let new = |(path, is_dir): &(&String, &bool)| before.get(path.as_str()) != Some(*is_dir);
            let old = |(path, is_dir): &(&&str, &bool)| now.get(**path) != Some(*is_dir);
            let new: Vec<_> = now.iter().filter(new).collect();
            let old: Vec<_> = before.iter().filter(old).map(|(path, _)| (*path).to_owned()).collect();
            // With changed rules everything may be different.
            let names = new.iter().map(|(path, _)| path.as_str()).chain(old.iter().map(String::as_str));
            if names.into_iter().any(|path| is_rules_file(path) || path.rsplit('/').next() == Some(".git")) {
                return self.walk(cancelled);
            }
            for (path, is_dir) in new {
                if *is_dir {
                    let Some(below) = walk(&self.root, path, cancelled) else { return false };
                    added.found.extend(below.found);
                    added.folders.extend(below.folders);
                    added.rules.extend(below.rules);
                } else {
                    added.found.push(FoundPath { path: path.clone(), is_dir: false });
                }
            }
            gone.extend(old);
            added.folders.push((folder, stamp));
        }
        self.apply(&gone, added)
    }

    fn apply(&mut self, gone: &BTreeSet<String>, added: Listing) -> bool {
        let differs = !gone.is_empty() || !added.found.is_empty();
        if differs {
            let is_gone = |path: &str| parts(path).any(|part| gone.contains(part));
            self.folders.retain(|folder, _| !is_gone(folder));
            self.index = Arc::new(self.index.changed(is_gone, added.found));
        }
        let still_there = |folder: &String| parts(folder).all(|part| !gone.contains(part)) || self.at(folder).is_dir();
        let stamps: Vec<_> = added.folders.into_iter().filter(|(folder, _)| still_there(folder)).collect();
        self.folders.extend(stamps);
        self.rules.extend(added.rules);
        differs
    }

    fn at(&self, folder: &str) -> PathBuf {
        if folder.is_empty() { self.root.clone() } else { self.root.join(Path::new(folder)) }
    }
}

/// A path and its ancestors: `a/b` gives `a` and `a/b`.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct TreeFixture {
        dir: tempfile::TempDir,
        tree: Tree,
    }

    fn fixture(files: &[&str]) -> TreeFixture {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::new(dir.path().into());
        let fixture = TreeFixture { dir, tree };
        files.iter().for_each(|file| fixture.put(file, ""));
        fixture
    }

    impl TreeFixture {
        fn put(&self, file: &str, text: &str) {
            let path = self.dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Checks that the index equals the result of a walk.
        fn check(&mut self, expected: &[&str]) {
            self.tree.refresh(&AtomicBool::new(false));
            let all = |index: &Index| -> Vec<String> {
                index.main.iter().map(|path| path.text.to_owned()).filter(|path| !path.is_empty()).collect()
            };
            assert_eq!(all(&self.tree.index), expected);
            let mut fresh = Tree::new(self.dir.path().into());
            fresh.refresh(&AtomicBool::new(false));
            assert_eq!(all(&self.tree.index), all(&fresh.index));
            let folders = |tree: &Tree| tree.folders.keys().cloned().collect::<Vec<_>>();
            assert_eq!(folders(&self.tree), folders(&fresh));
        }
    }

    #[test]
    fn created_moved_and_removed_files_are_detected() {
        let mut fixture = fixture(&["a/x", "b/c/y", "z"]);
        fixture.check(&["a", "a/x", "b", "b/c", "b/c/y", "z"]);
        fixture.put("a/new", "");
        fixture.put("d/e/f", "");
        fs::remove_file(fixture.dir.path().join("z")).unwrap();
        fixture.check(&["a", "a/new", "a/x", "b", "b/c", "b/c/y", "d", "d/e", "d/e/f"]);
        fs::rename(fixture.dir.path().join("b"), fixture.dir.path().join("a/b")).unwrap();
        fixture.check(&["a", "a/b", "a/b/c", "a/b/c/y", "a/new", "a/x", "d", "d/e", "d/e/f"]);
        fs::remove_dir_all(fixture.dir.path().join("d")).unwrap();
        fixture.put("d", "now a file");
        fixture.check(&["a", "a/b", "a/b/c", "a/b/c/y", "a/new", "a/x", "d"]);
    }

    #[test]
    fn changed_rules_change_the_index() {
        let mut fixture = fixture(&["a.log", "sub/b.log", "sub/c"]);
        fixture.check(&["a.log", "sub", "sub/b.log", "sub/c"]);
        fixture.put(".ignore", "*.log\n");
        fixture.check(&[".ignore", "sub", "sub/c"]);
        fixture.put(".ignore", "c\n");
        fixture.check(&[".ignore", "a.log", "sub", "sub/b.log"]);
        fixture.put("sub/.gitignore", "b.log\n");
        fixture.check(&[".ignore", "a.log", "sub", "sub/.gitignore", "sub/b.log"]);
        fs::create_dir(fixture.dir.path().join(".git")).unwrap();
        fixture.check(&[".git", ".ignore", "a.log", "sub", "sub/.gitignore"]);
    }

    #[test]
    fn blocking_rules_files_are_not_opened() {
        let fifo = |fixture: &TreeFixture, name: &str| {
            let path = fixture.dir.path().join(name);
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let mut nested = fixture(&["a/x", "b/y", "z"]);
        fifo(&nested, "a/.ignore");
        nested.check(&["b", "b/y", "z"]);
        nested.put("b/n", "");
        nested.check(&["b", "b/n", "b/y", "z"]);
        fs::remove_file(nested.dir.path().join("a/.ignore")).unwrap();
        nested.check(&["a", "a/x", "b", "b/n", "b/y", "z"]);

        let mut outer = fixture(&["a/x", ".git/HEAD"]);
        fifo(&outer, ".gitignore");
        outer.check(&[".git", ".gitignore", "a", "a/x"]);
    }

    #[test]
    fn circular_links_are_cut() {
        let mut fixture = fixture(&["a/b/x"]);
        fixture.check(&["a", "a/b", "a/b/x"]);
        std::os::unix::fs::symlink("../..", fixture.dir.path().join("a/b/up")).unwrap();
        std::os::unix::fs::symlink("../a/b", fixture.dir.path().join("a/side")).unwrap();
        fixture.tree.refresh(&AtomicBool::new(false));
        let paths: Vec<_> = fixture.tree.index.main.iter().map(|path| path.text.to_owned()).collect();
        assert!(paths.contains(&"a/side/x".to_owned()), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("a/b/up")), "{paths:?}");
    }

    #[test]
    fn refreshing_reported_folders_suffices() {
        let mut fixture = fixture(&["a/x", "b/y"]);
        fixture.check(&["a", "a/x", "b", "b/y"]);
        fixture.put("a/n", "");
        let never = AtomicBool::new(false);
        let folder = |name: &str| BTreeSet::from([fixture.dir.path().join(name)]);
        fixture.tree.refresh_folders(&folder("b"), &never);
        assert!(!fixture.tree.refresh_folders(&folder("b"), &never));
        assert!(fixture.tree.refresh_folders(&folder("a"), &never));
        fixture.check(&["a", "a/n", "a/x", "b", "b/y"]);
    }

    #[test]
    fn a_missing_root_is_empty_until_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(dir.path().join("later"));
        tree.refresh(&AtomicBool::new(false));
        assert!(tree.index().is_empty());
        fs::create_dir(dir.path().join("later")).unwrap();
        fs::write(dir.path().join("later/x"), "").unwrap();
        tree.refresh(&AtomicBool::new(false));
        assert_eq!(tree.index().len(), 2);
    }
}

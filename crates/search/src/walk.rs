//! Walks the disk: all files and folders below a folder, according to `.gitignore` and similar rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use parking_lot::Mutex;

use crate::index::FoundPath;
use crate::stamp::Stamp;
use crate::{rules, threads};

/// Bound of the number of files, which have to fit into memory.
const MAX_FOUND: usize = 5_000_000;

/// The content of a folder.
#[derive(Default)]
pub(crate) struct Listing {
    /// Paths relative to the root of the tree; the root itself is `""`.
    pub found: Vec<FoundPath>,
    /// The folders among them, with stamps taken before they were read.
    pub folders: Vec<(String, Stamp)>,
    /// The files of rules that apply.
    pub rules: Vec<(PathBuf, Stamp)>,
}

/// Lists everything below `root/below`, and that folder. `None` if cancelled.
pub(crate) fn walk(root: &Path, below: &str, cancelled: &AtomicBool) -> Option<Listing> {
    let collector = Collector { root, listing: Mutex::default(), count: AtomicUsize::new(0), cancelled };
    let excluded = ExcludedFolders::default();
    builder(&root.join(below), &excluded).threads(threads()).build_parallel().visit(&mut &collector);
    let mut listing = collector.listing.into_inner();
    listing.rules.extend(rules_above(&root.join(below)));
    listing.rules.extend(excluded.stamps());
    (!cancelled.load(Ordering::Relaxed)).then_some(listing)
}

/// Lists the direct children of `root/folder`.
pub(crate) fn list(root: &Path, folder: &str) -> Listing {
    let folder = root.join(folder);
    let excluded = ExcludedFolders::default();
    let walk = builder(&folder, &excluded).max_depth(Some(1)).build();
    let children = walk.flatten().filter(|entry| entry.depth() == 1 && !links_to_ancestor(&folder, entry));
    let found = children.filter_map(|entry| found(root, &entry)).collect();
    Listing { found, rules: excluded.stamps(), ..Listing::default() }
}

/// Unreadable files of rules. Their folders are excluded until the files change.
#[derive(Clone, Default)]
struct ExcludedFolders(Arc<Mutex<Vec<PathBuf>>>);

impl ExcludedFolders {
    /// Whether a walk may enter a folder.
    fn admits(&self, folder: &Path) -> bool {
        let unreadable = rules::unreadable(folder);
        let admits = unreadable.is_none();
        self.0.lock().extend(unreadable);
        admits
    }

    fn stamps(&self) -> Vec<(PathBuf, Stamp)> {
        let files = std::mem::take(&mut *self.0.lock());
        files.into_iter().map(|file| (file.clone(), Stamp::take(&file))).collect()
    }
}

/// Whether this is a link to a folder that contains it. A walk from the root would detect the cycle.
fn links_to_ancestor(folder: &Path, entry: &DirEntry) -> bool {
    let circle = || Some(folder.canonicalize().ok()?.starts_with(entry.path().canonicalize().ok()?));
    entry.path_is_symlink() && circle() == Some(true)
}

/// Rules of the folder itself, or of one above, that cannot be read do not apply.
fn builder(folder: &Path, excluded: &ExcludedFolders) -> WalkBuilder {
    let mut builder = WalkBuilder::new(folder);
    // Hidden files are included; `.gitignore` applies in a repository only, `.ignore` always.
    builder.hidden(false).follow_links(true).require_git(true).git_global(rules::can_read_global());
    if folder.ancestors().all(|folder| excluded.admits(folder)) {
        let excluded = excluded.clone();
        let is_dir = |entry: &DirEntry| entry.file_type().is_some_and(|kind| kind.is_dir());
        builder.filter_entry(move |entry| entry.depth() == 0 || !is_dir(entry) || excluded.admits(entry.path()));
    } else {
        builder.standard_filters(false);
    }
    builder
}

/// The rules of folders above, which a walk does not visit.
fn rules_above(folder: &Path) -> Vec<(PathBuf, Stamp)> {
    let above = folder.ancestors().skip(1);
    let files =
        above.flat_map(|folder| [".gitignore", ".ignore", ".git", ".git/info/exclude"].map(|name| folder.join(name)));
    let own = [".git/info/exclude"].map(|name| folder.join(name));
    // Of `.git` above, only its existence matters, and its time changes constantly.
    let stamp = |file: PathBuf| {
        let stamp = if file.ends_with(".git") && file.exists() { None } else { Some(Stamp::take(&file)) };
        stamp.map(|stamp| (file, stamp))
    };
    files.chain(own).filter_map(stamp).collect()
}

/// Whether a file of this name contains rules.
pub(crate) fn is_rules_file(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some(".gitignore" | ".ignore")) || path.ends_with(".git/info/exclude")
}

fn found(root: &Path, entry: &DirEntry) -> Option<FoundPath> {
    let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
    Some(FoundPath { path, is_dir: entry.file_type()?.is_dir() })
}

/// Collects the results of all threads of a walk.
struct Collector<'a> {
    root: &'a Path,
    listing: Mutex<Listing>,
    count: AtomicUsize,
    cancelled: &'a AtomicBool,
}

/// The results of one thread.
struct Visitor<'a> {
    collector: &'a Collector<'a>,
    listing: Listing,
}

impl<'s, 'a: 's> ParallelVisitorBuilder<'s> for &'a Collector<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 's> {
        Box::new(Visitor { collector: self, listing: Listing::default() })
    }
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        // Unreadable entries, and dangling or circular links, are left out.
        let Ok(entry) = entry else { return WalkState::Continue };
        if self.collector.cancelled.load(Ordering::Relaxed) {
            return WalkState::Quit;
        }
        let Some(found) = found(self.collector.root, &entry) else { return WalkState::Skip };
        if self.collector.count.fetch_add(1, Ordering::Relaxed) >= MAX_FOUND {
            return WalkState::Quit;
        }
        if found.is_dir {
            self.listing.folders.push((found.path.clone(), Stamp::take(entry.path())));
        } else if is_rules_file(&found.path) {
            self.listing.rules.push((entry.path().to_owned(), Stamp::take(entry.path())));
        }
        self.listing.found.push(found);
        WalkState::Continue
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        let mut all = self.collector.listing.lock();
        all.found.append(&mut self.listing.found);
        all.folders.append(&mut self.listing.folders);
        all.rules.append(&mut self.listing.rules);
    }
}

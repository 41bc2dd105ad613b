//! Files whose head has not been read yet, newest first by either key.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_protocol::ThreadSortKey;

use super::row::Stat;
use crate::ThreadId;

/// A rollout that is not in the index yet.
#[derive(Clone, Debug)]
pub(super) struct UnreadFile {
    pub folder: Arc<str>,
    pub name: Box<str>,
    pub id: ThreadId,
    /// The name's time, seconds.
    pub time: i64,
    /// When it was last changed, seconds; looked up when that order is first asked for.
    pub mtime: Option<i64>,
}

impl UnreadFile {
    fn key(&self, sort: ThreadSortKey) -> i64 {
        match sort {
            ThreadSortKey::CreatedAt => self.time,
            ThreadSortKey::UpdatedAt => self.mtime.unwrap_or(i64::MIN),
        }
    }
}

/// Names hold local time and lists are in UTC: no place on earth is further from it than 14 hours, and
/// between giving a name and writing the time into the file little time passes.
const TIME_ZONES: i64 = 15 * 60 * 60;

/// The files that wait, kept in the order in which they were last asked for.
pub(super) struct Unread {
    home: PathBuf,
    /// Oldest first: the next one is at the end.
    files: Vec<UnreadFile>,
    order: Option<ThreadSortKey>,
}

impl Unread {
    pub(super) fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), files: Vec::new(), order: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn push(&mut self, file: UnreadFile) {
        self.files.push(file);
        self.order = None;
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&UnreadFile) -> bool) {
        self.files.retain(keep);
    }

    pub(super) fn names_in(&self, folder: &str) -> HashSet<Box<str>> {
        self.files.iter().filter(|file| &*file.folder == folder).map(|file| file.name.clone()).collect()
    }

    /// The newest files, at most `count`.
    pub(super) fn newest(&mut self, sort: ThreadSortKey, count: usize) -> Vec<UnreadFile> {
        self.arrange(sort);
        self.files.split_off(self.files.len().saturating_sub(count))
    }

    /// The files that are named after a thread.
    pub(super) fn of_thread(&mut self, id: ThreadId) -> Vec<UnreadFile> {
        let (found, rest) = self.files.drain(..).partition(|file| file.id == id);
        self.files = rest;
        found
    }

    /// No file that waits is newer than this; `None` when none waits.
    pub(super) fn bound(&mut self, sort: ThreadSortKey) -> Option<i64> {
        self.arrange(sort);
        let newest = self.files.last()?.key(sort);
        Some(if sort == ThreadSortKey::CreatedAt { newest.saturating_add(TIME_ZONES) } else { newest })
    }

    fn arrange(&mut self, sort: ThreadSortKey) {
        if self.order != Some(sort) {
            if sort == ThreadSortKey::UpdatedAt {
                for file in self.files.iter_mut().filter(|file| file.mtime.is_none()) {
                    let path = self.home.join(&*file.folder).join(&*file.name);
                    let stat = Stat::of(&path).ok().flatten();
                    file.mtime = Some(stat.map_or(i64::MIN, |stat| stat.mtime.div_euclid(1_000_000_000)));
                }
            }
            self.files.sort_unstable_by_key(|file| file.key(sort));
            self.order = Some(sort);
        }
    }
}

//! What is not indexed yet: folders whose files are not known and files whose heads are not, newest first by either key.
//! A bound on how new any of them can be lets a page read only the newest ones.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::row::FileStamp;
use crate::ThreadId;
use crate::path::{RolloutName, SESSIONS};

/// What files are ordered by: the time of creation in seconds, or of the last change in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Created,
    Changed,
}

/// A rollout that is not in the index yet.
#[derive(Clone, Debug)]
pub(super) struct UnindexedFile {
    pub folder: Arc<str>,
    pub name: Box<str>,
    pub parsed: RolloutName,
    /// When the thread was created, seconds; `None` when only the file's content shows it.
    pub created: Option<i64>,
    /// Looked up when files are first ordered by their change.
    pub stamp: Option<FileStamp>,
}

/// Names hold local time and lists are in UTC: no place on earth is further from it than 14 hours, and
/// between giving a name and writing the time into the file little time passes.
const TIME_ZONES: i64 = 15 * 60 * 60;
/// All time zones are this far apart, or a multiple of it.
const TIME_ZONE_STEP: i64 = 15 * 60;
/// An id is made just before the time of creation is taken.
const ID_TO_CREATION: i64 = 30;

impl UnindexedFile {
    pub(super) fn new(folder: Arc<str>, name: &str, parsed: RolloutName) -> Self {
        Self { folder, name: name.into(), created: created(parsed), parsed, stamp: None }
    }

    /// No thread in the file is newer.
    fn newest(&self, sort: Order) -> i64 {
        match sort {
            Order::Created => self.created.unwrap_or(self.parsed.seconds().saturating_add(TIME_ZONES)),
            Order::Changed => self.stamp.map_or(i64::MIN, |stamp| stamp.mtime),
        }
    }

    pub(super) fn path(&self, home: &Path) -> PathBuf {
        home.join(&*self.folder).join(&*self.name)
    }
}

/// The time of creation in UTC: the id's own time gives the time zone of the name. `None` for an id
/// without a time, or one that does not fit the name.
fn created(name: RolloutName) -> Option<i64> {
    let (id, _) = name.id.as_uuid().get_timestamp()?.to_unix();
    let (id, local) = (i64::try_from(id).ok()?, name.seconds());
    let offset = (local - id + TIME_ZONE_STEP / 2).div_euclid(TIME_ZONE_STEP) * TIME_ZONE_STEP;
    let created = local - offset;
    (offset.abs() < TIME_ZONES && (created - id).abs() <= ID_TO_CREATION).then_some(created)
}

/// A file in the current order of [`Unindexed`].
struct RankedFile {
    newest: i64,
    file: UnindexedFile,
}

impl Ord for RankedFile {
    fn cmp(&self, other: &Self) -> Ordering {
        self.newest.cmp(&other.newest)
    }
}

impl PartialOrd for RankedFile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedFile {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedFile {}

/// The next thing to read.
pub(super) enum Next {
    Folder(Arc<str>),
    File(UnindexedFile),
}

/// The folders and files that are not indexed yet.
pub(super) struct Unindexed {
    home: PathBuf,
    /// With the time that no thread in it is newer than. Files are taken to lie in the folders of their days.
    folders: BTreeSet<(i64, Arc<str>)>,
    files: BinaryHeap<RankedFile>,
    order: Order,
}

impl Unindexed {
    pub(super) fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), folders: BTreeSet::new(), files: BinaryHeap::new(), order: Order::Created }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    pub(super) fn push_folder(&mut self, name: &str) {
        self.folders.insert((newest_of_day(name), name.into()));
    }

    pub(super) fn push(&mut self, mut file: UnindexedFile) {
        self.look_up_stamp(&mut file);
        self.files.push(RankedFile { newest: file.newest(self.order), file });
    }

    /// Forgets the folders and files in folders that `gone` knows.
    pub(super) fn drop_folders(&mut self, gone: impl Fn(&str) -> bool) {
        self.folders.retain(|(_, name)| !gone(name));
        self.files.retain(|ranked| !gone(&ranked.file.folder));
    }

    pub(super) fn drop_files(&mut self, gone: impl Fn(&UnindexedFile) -> bool) {
        self.files.retain(|ranked| !gone(&ranked.file));
    }

    pub(super) fn names_in(&self, folder: &str) -> HashSet<Box<str>> {
        let files = self.files.iter().map(|ranked| &ranked.file);
        files.filter(|file| &*file.folder == folder).map(|file| file.name.clone()).collect()
    }

    /// What may hold the newest thread.
    pub(super) fn next(&mut self, sort: Order) -> Option<Next> {
        self.order_by(sort);
        let file = self.files.peek().map(|ranked| ranked.newest);
        match self.newest_folder(sort) {
            Some(folder) if file.is_none_or(|file| folder >= file) => self.next_folder().map(Next::Folder),
            _ => self.files.pop().map(|ranked| Next::File(ranked.file)),
        }
    }

    pub(super) fn next_folder(&mut self) -> Option<Arc<str>> {
        self.folders.pop_last().map(|(_, name)| name)
    }

    /// The files that are named after a thread.
    pub(super) fn of_thread(&mut self, id: ThreadId) -> Vec<UnindexedFile> {
        let (found, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.files).into_iter().partition(|ranked| ranked.file.parsed.id == id);
        self.files = rest.into();
        found.into_iter().map(|ranked| ranked.file).collect()
    }

    /// No thread that is not indexed is newer than this; `None` when all are indexed.
    pub(super) fn bound(&mut self, sort: Order) -> Option<i64> {
        self.order_by(sort);
        self.files.peek().map(|ranked| ranked.newest).max(self.newest_folder(sort))
    }

    fn newest_folder(&self, sort: Order) -> Option<i64> {
        let (newest, _) = self.folders.last()?;
        // A folder of an old day may hold a thread that changed just now.
        Some(if sort == Order::Created { *newest } else { i64::MAX })
    }

    /// Orders the files by another key.
    fn order_by(&mut self, sort: Order) {
        if self.order != sort {
            self.order = sort;
            let mut files = std::mem::take(&mut self.files).into_vec();
            for ranked in &mut files {
                self.look_up_stamp(&mut ranked.file);
                ranked.newest = ranked.file.newest(sort);
            }
            self.files = files.into();
        }
    }

    fn look_up_stamp(&self, file: &mut UnindexedFile) {
        if self.order == Order::Changed && file.stamp.is_none() {
            file.stamp = FileStamp::of(&file.path(&self.home)).ok().flatten();
        }
    }
}

/// The end of the day in the latest time zone; the end of time for folders without a day.
fn newest_of_day(folder: &str) -> i64 {
    let end = || {
        let day = folder.strip_prefix(SESSIONS)?.strip_prefix('/')?;
        let date = Date::strptime("%Y/%m/%d", day).ok()?.tomorrow().ok()?;
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second() + TIME_ZONES)
    };
    end().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_an_id_gives_the_time_zone_of_the_file_name() {
        // 2026-11-15T06:42:53.911Z
        let id = "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2";
        for (name, created) in [
            ("2026-11-15T06-42-53", Some(1794724973)),
            ("2026-11-15T06-42-59", Some(1794724979)),
            ("2026-11-15T12-12-53", Some(1794724973)),
            ("2026-11-14T18-42-53", Some(1794724973)),
            ("2026-11-15T06-50-53", None),
            ("2026-11-16T06-42-53", None),
            ("2025-11-15T06-42-53", None),
        ] {
            let name = RolloutName::parse(&format!("rollout-{name}-{id}.jsonl")).unwrap();
            assert_eq!(super::created(name), created, "{name:?}");
        }
        let other = "rollout-2026-11-15T06-42-53-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl";
        assert_eq!(super::created(RolloutName::parse(other).unwrap()), None);
    }

    #[test]
    fn a_day_ends_last_where_the_clocks_are_behind() {
        assert_eq!(newest_of_day("sessions/2026/11/14"), 1794700800 + TIME_ZONES);
        for other in ["archived_sessions", "sessions/2026/13/01", "sessions/1/2"] {
            assert_eq!(newest_of_day(other), i64::MAX, "{other}");
        }
    }
}

//! Which files there are. A folder whose time of change is the one last seen holds the same files; only
//! changed folders are read, so that a look at a large home costs one `stat` per day of use, and folders of
//! days only when what they hold can matter.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, open, statat};
use rustix::io::Errno;

use super::error::{IndexError, Result};
use super::row;
use super::unindexed::{Unindexed, UnindexedFile};
use crate::error::Error;
use crate::file::descriptors;
use crate::path::{ARCHIVED, RolloutName, SESSIONS};

/// A folder that changed this recently may change again without its time showing it.
const SETTLED: Duration = Duration::from_millis(50);

/// What is known of the folders of a home.
#[derive(Default)]
pub(super) struct Folders {
    known: BTreeMap<String, Folder>,
}

#[derive(Default)]
struct Folder {
    /// `None` until the folder has been read and is settled.
    mtime: Option<i64>,
    /// Whether the index file knows `mtime`.
    saved: bool,
    /// Whether this process has read it, so that some of its files may be waiting.
    read: bool,
    /// Sub-folders, of years and months.
    children: Vec<String>,
}

/// Reads the times of folders by their names in the home.
struct FolderTimes<'a> {
    home: &'a Path,
    opened: Option<BorrowedFd<'a>>,
}

impl FolderTimes<'_> {
    /// The time of change; `None` when there is no such folder.
    fn at(&self, name: &str) -> Result<Option<i64>> {
        let found = match self.opened {
            Some(home) => statat(home, name, AtFlags::empty()),
            None => statat(CWD, self.home.join(name), AtFlags::empty()),
        };
        match found {
            Ok(stat) => Ok((FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then(|| row::mtime(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(Error::io(self.home.join(name))(error.into()).into()),
        }
    }
}

/// Levels between `sessions` and the folders that hold files.
const DAY: usize = 3;

impl Folders {
    /// What an earlier run has seen.
    pub(super) fn load(db: &Connection) -> Result<Self> {
        let mut folders = Self::default();
        // Steps from one folder to the next instead of through all rows.
        let mut statement = db.prepare(
            "WITH RECURSIVE present (folder) AS (
                SELECT min(folder) FROM rollouts
                UNION ALL
                SELECT (SELECT min(folder) FROM rollouts WHERE folder > present.folder) FROM present WHERE folder NOT NULL
            ) SELECT present.folder, mtime FROM present LEFT JOIN folders USING (folder) WHERE present.folder NOT NULL",
        )?;
        for row in statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))? {
            let (folder, mtime): (_, Option<i64>) = row?;
            folders.known.insert(folder, Folder { mtime, saved: mtime.is_some(), ..Folder::default() });
        }
        Ok(folders)
    }

    /// Looks for folders in which files came or went. Those of days are added to `unindexed`.
    pub(super) fn check(&mut self, db: &Connection, home: &Path, unindexed: &mut Unindexed) -> Result<()> {
        // Short paths below an open folder are found sooner than long ones.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(home, flags, Mode::empty()).ok();
        let times = FolderTimes { home, opened: opened.as_ref().map(AsFd::as_fd) };
        self.visit(db, &times, SESSIONS, 0, unindexed)?;
        self.visit(db, &times, ARCHIVED, DAY, unindexed)
    }

    fn visit(
        &mut self,
        db: &Connection,
        times: &FolderTimes,
        name: &str,
        level: usize,
        unindexed: &mut Unindexed,
    ) -> Result<()> {
        let Some(mtime) = times.at(name)? else { return self.drop_folder(db, name, unindexed) };
        if self.known.get(name).is_none_or(|folder| folder.mtime != Some(mtime)) {
            if level == DAY {
                self.known.entry(name.to_owned()).or_default();
                unindexed.push_folder(name);
                return Ok(());
            }
            let started = SystemTime::now();
            let children = sub_folders(&times.home.join(name))?;
            for child in self.children_of(name).filter(|child| !children.contains(child)).collect::<BTreeSet<_>>() {
                self.drop_folder(db, &format!("{name}/{child}"), unindexed)?;
            }
            let mtime = is_settled(started, mtime).then_some(mtime);
            self.known.insert(name.to_owned(), Folder { mtime, children, ..Folder::default() });
        }
        if level < DAY {
            let children = self.known.get(name).map(|folder| folder.children.clone()).unwrap_or_default();
            for child in children {
                let folder = format!("{name}/{child}");
                match self.visit(db, times, &folder, level + 1, unindexed) {
                    // One unreadable folder does not hide the others.
                    Err(IndexError::Store(error @ Error::Storage { .. })) => {
                        tracing::warn!(%error, "a folder of threads cannot be read");
                    }
                    visited => visited?,
                }
            }
        }
        Ok(())
    }

    /// Reads the names in the folder of a day. New files are added to `unindexed`; rows of missing ones are removed.
    pub(super) fn read(&mut self, db: &Connection, home: &Path, name: &str, unindexed: &mut Unindexed) -> Result<()> {
        let started = SystemTime::now();
        let times = FolderTimes { home, opened: None };
        let Some(mtime) = times.at(name)? else { return self.drop_folder(db, name, unindexed) };
        let folder = self.known.entry(name.to_owned()).or_default();
        let waiting = if folder.read { unindexed.names_in(name) } else { HashSet::new() };
        read_day(db, &home.join(name), name, &waiting, unindexed)?;
        *folder = Folder { mtime: is_settled(started, mtime).then_some(mtime), read: true, ..Folder::default() };
        Ok(())
    }

    /// The next part of every known folder below one.
    fn children_of(&self, name: &str) -> impl Iterator<Item = String> {
        let below = format!("{name}/");
        self.known.keys().filter_map(move |known| Some(known.strip_prefix(&below)?.split('/').next()?.to_owned()))
    }

    fn drop_folder(&mut self, db: &Connection, name: &str, unindexed: &mut Unindexed) -> Result<()> {
        let below = format!("{name}/");
        let known = self.known.keys().any(|folder| folder == name || folder.starts_with(&below));
        if known {
            self.known.retain(|folder, _| folder != name && !folder.starts_with(&below));
            unindexed.drop_folders(|folder| folder == name || folder.starts_with(&below));
            for table in ["rollouts", "folders"] {
                db.execute(
                    &format!("DELETE FROM {table} WHERE folder = ?1 OR substr(folder, 1, ?3) = ?2"),
                    params![name, below, below.chars().count() as i64],
                )?;
            }
        }
        Ok(())
    }

    /// Remembers for later runs which folders have been read whole.
    pub(super) fn save(&mut self, db: &Connection) -> Result<()> {
        // Folders above the days are read at every start: that is where new days are found.
        for (name, folder) in self.known.iter_mut().filter(|(name, folder)| !folder.saved && is_day(name)) {
            if let Some(mtime) = folder.mtime {
                db.prepare_cached("INSERT OR REPLACE INTO folders VALUES (?1, ?2)")?.execute(params![name, mtime])?;
                folder.saved = true;
            }
        }
        Ok(())
    }
}

fn is_day(name: &str) -> bool {
    name == ARCHIVED || name.split('/').count() == DAY + 1
}

fn is_settled(now: SystemTime, mtime: i64) -> bool {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::from_nanos(mtime.unsigned_abs());
    mtime > 0 && changed + SETTLED < now
}

/// Numbered sub-folders, newest first.
fn sub_folders(path: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in descriptors::open(|| fs::read_dir(path)).map_err(Error::io(path))? {
        let name = entry.map_err(Error::io(path))?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            found.push(name.to_owned());
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

fn read_day(
    db: &Connection,
    path: &Path,
    folder: &str,
    waiting: &HashSet<Box<str>>,
    unindexed: &mut Unindexed,
) -> Result<()> {
    let mut rows: HashSet<String> = db
        .prepare_cached("SELECT name FROM rollouts WHERE folder = ?1")?
        .query_map([folder], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut gone = waiting.clone();
    let shared: std::sync::Arc<str> = folder.into();
    for entry in descriptors::open(|| fs::read_dir(path)).map_err(Error::io(path))? {
        let entry = entry.map_err(Error::io(path))?;
        let name = entry.file_name();
        let Some((name, parsed)) = name.to_str().and_then(|name| Some((name, RolloutName::parse(name)?))) else {
            continue;
        };
        gone.remove(name);
        if rows.remove(name) || waiting.contains(name) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            unindexed.push(UnindexedFile::new(shared.clone(), name, parsed));
        }
    }
    for name in &rows {
        row::remove(db, folder, name)?;
    }
    if !gone.is_empty() {
        unindexed.drop_files(|file| &*file.folder == folder && gone.contains(&*file.name));
    }
    Ok(())
}

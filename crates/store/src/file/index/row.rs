//! One row per rollout file: its head, and the stamp of the file when the head was read.

use std::os::fd::OwnedFd;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, open, statat};
use rustix::io::Errno;

use super::error::{IndexError, Result};
use super::facet;
use super::unindexed::UnindexedFile;
use crate::error::{Error, place};
use crate::file::descriptors;
use crate::head::{self, Head};
use crate::list::Kind;
use crate::path::{ARCHIVED, RolloutName};
use crate::rollout::SessionMeta;
use crate::signature;
use crate::thread::created_at;
use crate::{StoredThread, ThreadId};

/// A file's size and time of change: equal means unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
}

impl FileStamp {
    /// The state of a file that could not be read. No file ever has it, so that the next look reads again.
    pub(super) const UNREADABLE: Self = Self { size: 0, mtime: i64::MIN };

    /// `None` when there is no such file.
    pub(super) fn of(path: &Path) -> Result<Option<Self>> {
        Self::look(statat(CWD, path, AtFlags::empty()), path)
    }

    fn look(found: rustix::io::Result<rustix::fs::Stat>, path: &Path) -> Result<Option<Self>> {
        match found {
            Ok(stat) => {
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                Ok(is_file.then(|| Self { size: u64::try_from(stat.st_size).unwrap_or(0), mtime: mtime(&stat) }))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(Error::io(path)(error.into()).into()),
        }
    }

    /// In whole seconds, as lists show it.
    pub(super) fn updated_at(self) -> i64 {
        self.mtime.div_euclid(1_000_000_000)
    }
}

/// Nanoseconds since 1970.
pub(super) fn mtime(stat: &rustix::fs::Stat) -> i64 {
    #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
    let (seconds, nanos) = (i64::from(stat.st_mtime), i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Looks at the files of rows. The folder of the last one stays open: the next one is mostly there too, and
/// its name alone is found sooner than its path.
pub(super) struct StampReader<'a> {
    home: &'a Path,
    folder: Option<(&'a str, Option<OwnedFd>)>,
}

impl<'a> StampReader<'a> {
    pub(super) fn new(home: &'a Path) -> Self {
        Self { home, folder: None }
    }

    fn stat(&mut self, entry: &'a RowState) -> Result<Option<FileStamp>> {
        let path = || self.home.join(&entry.folder).join(&entry.name);
        match &mut self.folder {
            Some((folder, opened)) if *folder == entry.folder => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                if opened.is_none() {
                    *opened = open(self.home.join(&entry.folder), flags, Mode::empty()).ok();
                }
                match opened {
                    Some(folder) => FileStamp::look(statat(&*folder, &*entry.name, AtFlags::empty()), &path()),
                    None => FileStamp::of(&path()),
                }
            }
            // One file alone is not worth opening its folder.
            _ => {
                self.folder = Some((&entry.folder, None));
                FileStamp::of(&path())
            }
        }
    }
}

/// A row's key, place and the file state it was made from.
#[derive(Clone, Debug)]
pub(super) struct RowState {
    pub key: i64,
    pub folder: String,
    pub name: String,
    pub stamp: FileStamp,
    pub listed: bool,
}

pub(super) const ROW_STATE: &str = "key, folder, name, size, mtime, listed";

impl RowState {
    pub(super) fn read(row: &Row) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            folder: row.get(1)?,
            name: row.get(2)?,
            stamp: FileStamp { size: row.get::<_, i64>(3)?.unsigned_abs(), mtime: row.get(4)? },
            listed: row.get(5)?,
        })
    }
}

/// Reads a file's head and writes its row. A file that is gone leaves no row.
///
/// A file that cannot be read is an [`Error::Storage`]: a row that it has stays, else it gets one that holds only
/// that the file exists and has to be read.
pub(super) fn index_file(db: &Connection, home: &Path, folder: &str, name: &str) -> Result<()> {
    index_file_as(db, home, folder, name, None)
}

/// The same, for a file that was looked at before: what was appended since makes the row stale, not wrong.
pub(super) fn index_file_as(
    db: &Connection,
    home: &Path,
    folder: &str,
    name: &str,
    seen: Option<FileStamp>,
) -> Result<()> {
    let Some(parsed) = RolloutName::parse(name) else { return Ok(()) };
    let path = home.join(folder).join(name);
    // The state before the head, for the same reason.
    let stat = match seen.map_or_else(|| FileStamp::of(&path), |stat| Ok(Some(stat))) {
        Ok(Some(stat)) => stat,
        Ok(None) => return remove(db, folder, name),
        Err(IndexError::Store(error)) => return Err(note_unreadable(db, folder, name, parsed, error)?.into()),
        Err(error) => return Err(error),
    };
    match descriptors::open_file(&path).and_then(head::read) {
        Ok(head) => put(db, folder, name, parsed, stat, head),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => remove(db, folder, name),
        Err(error) => Err(note_unreadable(db, folder, name, parsed, Error::io(&path)(error))?.into()),
    }
}

/// Remembers that there is a file that could not be read. Gives the reason back.
fn note_unreadable(db: &Connection, folder: &str, name: &str, parsed: RolloutName, reason: Error) -> Result<Error> {
    if entry(db, folder, name)?.is_none() {
        put(db, folder, name, parsed, FileStamp::UNREADABLE, Head::default())?;
    }
    Ok(reason)
}

/// When the thread in a file was created, as its row will hold it.
pub(super) fn created(home: &Path, file: &UnindexedFile) -> i64 {
    match descriptors::open_file(&file.path(home)).and_then(head::read_meta) {
        Ok(Some(meta)) => created_at(&meta, || Some(file.parsed)),
        Ok(None) | Err(_) => file.parsed.seconds(),
    }
}

fn put(db: &Connection, folder: &str, name: &str, parsed: RolloutName, stamp: FileStamp, head: Head) -> Result<()> {
    let listed = head.meta.is_some() && head.preview.is_some();
    let meta = head.meta.map(|meta| head::slim(*meta));
    let id = meta.as_ref().map_or(parsed.id, |meta| meta.id);
    let created = meta.as_ref().map_or_else(|| parsed.seconds(), |meta| created_at(meta, || Some(parsed)));
    let signature = head.preview.as_deref().map(signature::of);
    let text = meta.as_ref().map(serde_json::to_string).transpose()?;
    let facet = facet::of(
        db,
        meta.as_ref().map_or(Kind::Unknown, |meta| Kind::of(&meta.source)),
        meta.as_ref().and_then(|meta| meta.model_provider.as_deref()),
    )?;
    db.prepare_cached(
        "INSERT INTO rollouts (folder, name, size, mtime, id, listed, archived, created_at, updated_at, facet, cwd, preview, meta, signature, parent, attached_to, originator)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
         ON CONFLICT (folder, name) DO UPDATE SET size = ?3, mtime = ?4, id = ?5, listed = ?6, archived = ?7,
         created_at = ?8, updated_at = ?9, facet = ?10, cwd = ?11, preview = ?12, meta = ?13, signature = ?14,
         parent = ?15, attached_to = ?16, originator = ?17, searched = 0",
    )?
    .execute(params![
        folder,
        name,
        stamp.size as i64,
        stamp.mtime,
        id.as_uuid().as_bytes().as_slice(),
        listed,
        folder == ARCHIVED,
        created,
        stamp.updated_at(),
        facet,
        meta.as_ref().map_or("", |meta| &meta.cwd),
        head.preview,
        // A blank file differs from one without a session_meta.
        text.or_else(|| head.blank.then(|| BLANK.to_owned())),
        signature,
        id_bytes(meta.as_ref().and_then(SessionMeta::parent)),
        id_bytes(meta.as_ref().and_then(|meta| meta.attached_to)),
        meta.as_ref().map(|meta| meta.originator.as_str()),
    ])?;
    Ok(())
}

fn id_bytes(id: Option<ThreadId>) -> Option<Vec<u8>> {
    id.map(|id| id.as_uuid().as_bytes().to_vec())
}

/// Stands in the `meta` column of a file that holds nothing.
const BLANK: &str = "blank";

pub(super) fn remove(db: &Connection, folder: &str, name: &str) -> Result<()> {
    db.prepare_cached("DELETE FROM rollouts WHERE folder = ?1 AND name = ?2")?.execute([folder, name])?;
    Ok(())
}

/// Brings a row up to date with its file. Returns whether the row changed; fails with [`Error::Storage`] when the
/// file cannot be read, and the row stays as it was.
pub(super) fn verify(db: &Connection, home: &Path, entry: &RowState) -> Result<bool> {
    verify_with(db, &mut StampReader::new(home), entry)
}

/// The same, for one row of many.
pub(super) fn verify_with<'a>(db: &Connection, stamps: &mut StampReader<'a>, entry: &'a RowState) -> Result<bool> {
    match stamps.stat(entry)? {
        Some(stat) if stat == entry.stamp => Ok(false),
        // Appended to: the head has been read.
        Some(stat) if entry.listed && stat.size >= entry.stamp.size => {
            db.prepare_cached(
                "UPDATE rollouts SET size = ?2, mtime = ?3, updated_at = ?4, searched = 0 WHERE key = ?1",
            )?
            .execute(params![entry.key, stat.size as i64, stat.mtime, stat.updated_at()])?;
            Ok(true)
        }
        _ => index_file(db, stamps.home, &entry.folder, &entry.name).map(|()| true),
    }
}

/// The row of a file.
pub(super) fn entry(db: &Connection, folder: &str, name: &str) -> Result<Option<RowState>> {
    Ok(db
        .prepare_cached(&format!("SELECT {ROW_STATE} FROM rollouts WHERE folder = ?1 AND name = ?2"))?
        .query_row([folder, name], RowState::read)
        .optional()?)
}

pub(super) const THREAD: &str =
    "key, folder, name, size, mtime, listed, archived, created_at, updated_at, preview, meta";

/// A row as a thread, without its name and git changes.
pub(super) struct ThreadRow {
    pub entry: RowState,
    pub archived: bool,
    pub created_at: i64,
    pub updated_at: i64,
    pub preview: Option<String>,
    pub meta: Option<String>,
}

impl ThreadRow {
    pub(super) fn read(row: &Row) -> rusqlite::Result<Self> {
        Ok(Self {
            entry: RowState::read(row)?,
            archived: row.get(6)?,
            created_at: row.get(7)?,
            updated_at: row.get(8)?,
            preview: row.get(9)?,
            meta: row.get(10)?,
        })
    }

    pub(super) fn into_thread(self, home: &Path) -> Result<StoredThread> {
        let path = home.join(&self.entry.folder).join(&self.entry.name);
        let meta: SessionMeta = match self.meta.as_deref() {
            None if self.entry.stamp == FileStamp::UNREADABLE => {
                let reason = std::io::Error::other("the rollout could not be read");
                return Err(Error::io(&path)(reason).into());
            }
            None => return Err(Error::NoSessionMeta { place: place(&path) }.into()),
            Some(BLANK) => return Err(Error::Empty { place: place(&path) }.into()),
            Some(text) => serde_json::from_str(text)?,
        };
        Ok(StoredThread {
            git_info: meta.git.as_ref().and_then(|git| git.to_wire()),
            meta,
            path: Some(path),
            archived: self.archived,
            preview: self.preview,
            updated_at: self.updated_at,
            updated_ns: self.entry.stamp.mtime,
            name: None,
        })
    }
}

pub(super) fn by_id(db: &Connection, id: ThreadId, archived: Option<bool>) -> Result<Option<ThreadRow>> {
    Ok(db
        .prepare_cached(&format!(
            "SELECT {THREAD} FROM rollouts WHERE id = ?1 AND (?2 IS NULL OR archived = ?2) ORDER BY archived, name DESC LIMIT 1"
        ))?
        .query_row(params![id.as_uuid().as_bytes().as_slice(), archived], ThreadRow::read)
        .optional()?)
}

pub(super) fn by_key(db: &Connection, key: i64) -> Result<Option<ThreadRow>> {
    Ok(db
        .prepare_cached(&format!("SELECT {THREAD} FROM rollouts WHERE key = ?1"))?
        .query_row([key], ThreadRow::read)
        .optional()?)
}

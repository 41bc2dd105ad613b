//! One row per rollout file: what its head says and which state of the file that was.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::signature;
use crate::error::{Error, Result};
use crate::head::{self, Head};
use crate::list::Kind;
use crate::path::{ARCHIVED, RolloutName};
use crate::rollout::SessionMeta;
use crate::thread::created_at;
use crate::{StoredThread, ThreadId};

/// A file's size and time of change: equal means unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
}

impl Stat {
    /// `None` when there is no such file.
    pub(super) fn of(path: &Path) -> Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(meta) => Ok(meta.is_file().then(|| Self { size: meta.len(), mtime: mtime(&meta) })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::io(path)(error)),
        }
    }
}

pub(super) fn mtime(meta: &fs::Metadata) -> i64 {
    let Ok(time) = meta.modified() else { return 0 };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// A row's key, place and the file state it was made from.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: i64,
    pub folder: String,
    pub name: String,
    pub stat: Stat,
    pub listed: bool,
}

pub(super) const ENTRY: &str = "key, folder, name, size, mtime, listed";

impl Entry {
    pub(super) fn read(row: &Row) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            folder: row.get(1)?,
            name: row.get(2)?,
            stat: Stat { size: row.get::<_, i64>(3)?.unsigned_abs(), mtime: row.get(4)? },
            listed: row.get(5)?,
        })
    }
}

/// Reads a file's head and writes its row. A file that is gone leaves no row.
pub(super) fn index_file(db: &Connection, home: &Path, folder: &str, name: &str) -> Result<()> {
    let Some(parsed) = RolloutName::parse(name) else { return Ok(()) };
    let path = home.join(folder).join(name);
    // The state first: what is appended while the head is read makes the row stale, not wrong.
    let stat = match Stat::of(&path) {
        Ok(Some(stat)) => stat,
        Ok(None) => return remove(db, folder, name),
        Err(error) => {
            tracing::debug!(%error, "a rollout cannot be looked at");
            return Ok(());
        }
    };
    let head = match head::read(&path) {
        Ok(head) => head,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove(db, folder, name),
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "a rollout cannot be read");
            Head::default()
        }
    };
    put(db, folder, name, parsed, stat, head)
}

fn put(db: &Connection, folder: &str, name: &str, parsed: RolloutName, stat: Stat, head: Head) -> Result<()> {
    let listed = head.meta.is_some() && head.preview.is_some();
    let meta = head.meta.map(|meta| slim(*meta));
    let id = meta.as_ref().map_or(parsed.id, |meta| meta.id);
    let created = meta.as_ref().map_or_else(|| parsed.seconds(), |meta| created_at(meta, Some(parsed)));
    let signature = head.preview.as_deref().map(signature::of);
    let text = meta.as_ref().map(serde_json::to_string).transpose()?;
    db.prepare_cached(
        "INSERT INTO rollouts (folder, name, size, mtime, id, listed, archived, created_at, updated_at, kind, provider, cwd, preview, meta, signature)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
         ON CONFLICT (folder, name) DO UPDATE SET size = ?3, mtime = ?4, id = ?5, listed = ?6, archived = ?7,
         created_at = ?8, updated_at = ?9, kind = ?10, provider = ?11, cwd = ?12, preview = ?13, meta = ?14, signature = ?15",
    )?
    .execute(params![
        folder,
        name,
        stat.size as i64,
        stat.mtime,
        id.as_uuid().as_bytes().as_slice(),
        listed,
        folder == ARCHIVED,
        created,
        stat.mtime.div_euclid(1_000_000_000),
        meta.as_ref().map_or(Kind::Unknown, |meta| Kind::of(&meta.source)) as u8,
        meta.as_ref().and_then(|meta| meta.model_provider.as_deref()),
        meta.as_ref().map_or("", |meta| &meta.cwd),
        head.preview,
        // A blank file is told from one without a session_meta.
        text.or_else(|| head.blank.then(|| BLANK.to_owned())),
        signature,
    ])?;
    Ok(())
}

/// Stands in the `meta` column of a file that holds nothing.
const BLANK: &str = "blank";

/// What lists and lookups need: the long parts stay in the file.
pub(crate) fn slim(mut meta: SessionMeta) -> SessionMeta {
    meta.base_instructions = None;
    meta.dynamic_tools = None;
    meta
}

pub(super) fn remove(db: &Connection, folder: &str, name: &str) -> Result<()> {
    db.prepare_cached("DELETE FROM rollouts WHERE folder = ?1 AND name = ?2")?.execute([folder, name])?;
    Ok(())
}

/// Brings a row up to date with its file. Returns whether the row changed.
pub(super) fn verify(db: &Connection, home: &Path, entry: &Entry) -> Result<bool> {
    let path = home.join(&entry.folder).join(&entry.name);
    let stat = match Stat::of(&path) {
        // What cannot be looked at stays as it was.
        Err(Error::Io { .. }) => return Ok(false),
        stat => stat?,
    };
    match stat {
        Some(stat) if stat == entry.stat => Ok(false),
        // Appended to: the head has been read.
        Some(stat) if entry.listed && stat.size >= entry.stat.size => {
            db.prepare_cached("UPDATE rollouts SET size = ?2, mtime = ?3, updated_at = ?4 WHERE key = ?1")?
                .execute(params![entry.key, stat.size as i64, stat.mtime, stat.mtime.div_euclid(1_000_000_000)])?;
            Ok(true)
        }
        _ => index_file(db, home, &entry.folder, &entry.name).map(|()| true),
    }
}

/// The row of a file.
pub(super) fn entry(db: &Connection, folder: &str, name: &str) -> Result<Option<Entry>> {
    Ok(db
        .prepare_cached(&format!("SELECT {ENTRY} FROM rollouts WHERE folder = ?1 AND name = ?2"))?
        .query_row([folder, name], Entry::read)
        .optional()?)
}

pub(super) const THREAD: &str =
    "key, folder, name, size, mtime, listed, archived, created_at, updated_at, preview, meta";

/// A row as a thread, without its name and git changes.
pub(super) struct ThreadRow {
    pub entry: Entry,
    pub archived: bool,
    pub created_at: i64,
    pub updated_at: i64,
    pub preview: Option<String>,
    pub meta: Option<String>,
}

impl ThreadRow {
    pub(super) fn read(row: &Row) -> rusqlite::Result<Self> {
        Ok(Self {
            entry: Entry::read(row)?,
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
            None => return Err(Error::NoSessionMeta { path }),
            Some(BLANK) => return Err(Error::Empty { path }),
            Some(text) => serde_json::from_str(text)?,
        };
        Ok(StoredThread {
            git_info: meta.git.as_ref().and_then(|git| git.to_wire()),
            meta,
            path,
            archived: self.archived,
            preview: self.preview,
            updated_at: self.updated_at,
            size: self.entry.stat.size,
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

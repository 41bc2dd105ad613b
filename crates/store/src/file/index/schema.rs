//! The index file: opening it, and starting over when it is missing, damaged or of another version. It is
//! a cache of the rollouts, so that starting over loses nothing.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ErrorCode};

use crate::signature;

/// Raised whenever a table or the meaning of a column changes.
const VERSION: i64 = 6;
/// How long to wait for another process that is writing to the index.
const BUSY: Duration = Duration::from_secs(5);

/// Some steps of opening do not wait by themselves.
const OPEN_ATTEMPTS: usize = 20;
const OPEN_PAUSE: Duration = Duration::from_millis(25);

const SCHEMA: &str = "
CREATE TABLE rollouts (
    key INTEGER PRIMARY KEY,
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    id BLOB NOT NULL,
    listed INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    facet INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    signature BLOB,
    preview TEXT,
    meta TEXT,
    parent BLOB,
    attached_to BLOB,
    originator TEXT,
    searched INTEGER NOT NULL DEFAULT 0,
    UNIQUE (folder, name)
);
CREATE INDEX by_id ON rollouts (id);
CREATE INDEX by_created ON rollouts (archived, facet, created_at DESC, id DESC, signature) WHERE listed;
CREATE INDEX by_updated ON rollouts (archived, facet, mtime DESC, id DESC, signature) WHERE listed;
CREATE INDEX by_cwd_created ON rollouts (archived, facet, cwd, created_at DESC, id DESC, signature) WHERE listed;
CREATE INDEX by_cwd_updated ON rollouts (archived, facet, cwd, mtime DESC, id DESC, signature) WHERE listed;
CREATE INDEX unlisted ON rollouts (archived, created_at DESC) WHERE NOT listed;
CREATE INDEX by_parent ON rollouts (parent) WHERE parent IS NOT NULL;
CREATE INDEX by_attached ON rollouts (attached_to) WHERE attached_to IS NOT NULL;
CREATE INDEX unsearched ON rollouts (archived, created_at DESC) WHERE listed AND NOT searched;
CREATE TABLE message_filters (key INTEGER PRIMARY KEY, filter BLOB NOT NULL);
CREATE TRIGGER drop_filter AFTER DELETE ON rollouts BEGIN DELETE FROM message_filters WHERE key = old.key; END;
CREATE INDEX unread ON rollouts (archived, created_at DESC) WHERE mtime = -9223372036854775808;
CREATE TABLE derived (key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
CREATE TABLE names (id BLOB PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names_file (
    key INTEGER PRIMARY KEY CHECK (key = 0),
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    read INTEGER NOT NULL,
    tail BLOB NOT NULL
);
CREATE TABLE facets (facet INTEGER PRIMARY KEY, kind INTEGER NOT NULL, provider TEXT);
CREATE TABLE folders (folder TEXT PRIMARY KEY, mtime INTEGER NOT NULL) WITHOUT ROWID;
";

/// Opens the index, making it anew if need be. Where no file can be kept, it lives in memory.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    if let Some(folder) = path.parent() {
        let _ = loomd_private::create_dir_all(folder);
    }
    match patient_open(path) {
        Ok(connection) => return Ok(connection),
        // In use or out of descriptors, not damaged.
        Err(error) if is_busy(&error) || error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            tracing::warn!(%error, "the thread index is not shared")
        }
        Err(error) => {
            tracing::info!(path = %path.display(), %error, "the thread index is built anew");
            discard(path);
            match patient_open(path) {
                Ok(connection) => return Ok(connection),
                Err(error) => tracing::warn!(%error, "the thread index cannot be kept"),
            }
        }
    }
    prepare(Connection::open_in_memory()?)
}

/// Another process may be making the index at this moment.
fn patient_open(path: &Path) -> rusqlite::Result<Connection> {
    for _ in 0..OPEN_ATTEMPTS {
        match try_open(path) {
            Err(error) if is_busy(&error) => std::thread::sleep(OPEN_PAUSE),
            opened => return opened,
        }
    }
    try_open(path)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Removes the index and what belongs to it.
pub(super) fn discard(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}

/// Whether starting over can help.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::DiskFull
                | ErrorCode::Unknown
        ),
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => true,
        _ => false,
    }
}

fn try_open(path: &Path) -> rusqlite::Result<Connection> {
    // SQLite would create the file readable for all users, and gives its log the mode of the file. Only a new file is
    // opened here: closing a second descriptor of it would drop the locks of this process.
    let _ = loomd_private::options().write(true).create_new(true).open(path);
    prepare(Connection::open(path)?)
}

fn prepare(mut connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY)?;
    // Statements are planned once, not again for every value that is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // An empty index need not be on the disk: a half-made one is made anew.
    connection.execute_batch(
        "PRAGMA page_size = 16384; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY;",
    )?;
    // Two processes may come here at once: the second one finds the work done.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if version != 0 || tables != 0 {
            return Err(rusqlite::Error::InvalidQuery);
        }
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // The threads that one query names, or may show; they are filled by each such query.
    connection.execute_batch(
        "CREATE TEMP TABLE wanted (id BLOB PRIMARY KEY) WITHOUT ROWID; CREATE TEMP TABLE excluded (id BLOB PRIMARY KEY) WITHOUT ROWID; CREATE TEMP TABLE candidates (search INTEGER, key INTEGER, PRIMARY KEY (search, key)) WITHOUT ROWID;",
    )?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    // A substring search at the speed of memory; SQLite's own compares byte by byte.
    connection.create_scalar_function("has_text", 2, flags, |context| {
        let bytes = (context.get_raw(0).as_bytes(), context.get_raw(1).as_bytes());
        Ok(matches!(bytes, (Ok(text), Ok(term)) if memchr::memmem::find(text, term).is_some()))
    })?;
    connection.create_scalar_function("may_hold", 2, flags, |context| {
        let bytes = (context.get_raw(0).as_bytes(), context.get_raw(1).as_bytes());
        Ok(!matches!(bytes, (Ok(filter), Ok(pieces)) if !signature::may_hold(filter, pieces)))
    })?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

//! The database of goals and queues: its tables, and how it is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::error::{Error, Failure};

/// How long an operation waits for another process.
const BUSY: Duration = Duration::from_secs(10);

/// The version of the tables. A database of another version is not touched.
const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE goals (
    thread_id TEXT PRIMARY KEY,
    goal_id TEXT NOT NULL,
    objective TEXT NOT NULL,
    status TEXT NOT NULL,
    token_budget INTEGER,
    tokens_used INTEGER NOT NULL,
    time_used_ms INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    stalled TEXT,
    wrapped_up INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    idle_turns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE queue (
    thread_id TEXT NOT NULL,
    id TEXT NOT NULL,
    place INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    input TEXT NOT NULL,
    turn_id TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;
CREATE TABLE started (
    thread_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    turn_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (thread_id, client_id, digest)
) WITHOUT ROWID;
";

/// Added to databases of the same version, which releases without it leave alone.
const ADDED: &str = "
CREATE TABLE IF NOT EXISTS answered (
    thread_id TEXT NOT NULL,
    method TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    answer TEXT NOT NULL,
    epoch TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (thread_id, method, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS approvals (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    method TEXT NOT NULL,
    params TEXT NOT NULL,
    asked_at_ms INTEGER NOT NULL,
    deadline_ms INTEGER,
    default_decision TEXT,
    state TEXT NOT NULL,
    decision TEXT,
    decided_at_ms INTEGER,
    connection TEXT,
    client TEXT,
    role TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS approvals_by_thread ON approvals (thread_id, id);
CREATE INDEX IF NOT EXISTS open_approvals ON approvals (id) WHERE state = 'open';
";

/// Opens the database in a file and creates its tables if there are none.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    if let Some(folder) = path.parent() {
        // SQLite reports what is wrong if this fails.
        let _ = loomd_private::create_dir_all(folder);
    }
    // SQLite would create the file readable for all users. Only a new file is opened here: closing a second descriptor
    // of it would drop the locks of this process.
    let _ = loomd_private::options().write(true).create_new(true).open(path);
    prepare(Connection::open(path)?)
}

pub(super) fn open_in_memory() -> rusqlite::Result<Connection> {
    prepare(Connection::open_in_memory()?)
}

fn prepare(mut connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY)?;
    // A commit is on the disk before it is acknowledged.
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match version {
        VERSION => {}
        0 => {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        _ => return Err(rusqlite::Error::InvalidQuery),
    }
    transaction.execute_batch(ADDED)?;
    transaction.commit()?;
    Ok(connection)
}

pub(super) fn error(place: String, error: &rusqlite::Error) -> Error {
    let failure = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Failure::Full,
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => Failure::Denied,
        _ => Failure::Other,
    };
    let reason = match error {
        rusqlite::Error::InvalidQuery => "the database belongs to another release".into(),
        other => other.to_string(),
    };
    Error::Storage { place, failure, reason }
}

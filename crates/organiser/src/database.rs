//! The database file: opening it, and running operations on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_store::ThreadId;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::{Error, Result};

/// Below the home, in the folder of what other servers do not know.
const FILE: &str = "loomd/organiser.sqlite";
/// How long to wait for another process that is writing.
const BUSY: Duration = Duration::from_secs(5);
/// Raised when a table changes; a newer file is refused.
const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE sections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    appearance TEXT
);
CREATE TABLE section_threads (
    thread BLOB PRIMARY KEY,
    section TEXT NOT NULL,
    position INTEGER NOT NULL,
    entered_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX in_section ON section_threads (section, position);
CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    roots TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE project_keys (key TEXT PRIMARY KEY, project TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE project_threads (thread BLOB PRIMARY KEY, project TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX in_project ON project_threads (project);
CREATE TABLE attachments (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    thread BLOB NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (thread, type, key)
);
CREATE INDEX attached ON attachments (type, key, thread);
CREATE TABLE read_states (
    thread BLOB PRIMARY KEY,
    unread_turn TEXT,
    revision INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE memory_modes (thread BLOB PRIMARY KEY, enabled INTEGER NOT NULL) WITHOUT ROWID;
";

/// What users add to the threads of a home. Cheap to clone and to make: the file is opened when it is first needed, and
/// made when something is first written.
#[derive(Clone)]
pub struct Organiser(Arc<Inner>);

struct Inner {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Organiser {
    /// The organiser of a home folder, which need not exist yet.
    pub fn new(home: &Path) -> Self {
        Self(Arc::new(Inner { path: home.join(FILE), connection: Mutex::new(None) }))
    }

    /// Does something on a blocking thread; without a runtime, here.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Result<T> + Send + 'static) -> Result<T> {
        let organiser = self.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(move || work(&organiser)).await.map_err(|_| Error::Stopped)?,
            Err(_) => work(&organiser),
        }
    }

    /// Reads. Returns the default, and makes no file, when nothing was ever written.
    pub(crate) fn read<T: Default>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut connection = self.0.connection.lock();
        match &mut *connection {
            Some(connection) => read(connection),
            none if self.0.path.exists() => read(none.insert(open(&self.0.path)?)),
            _ => Ok(T::default()),
        }
    }

    /// Changes something, whole or not at all. Holds the right to write from the beginning, so that what is read is not
    /// changed by another process before it is written.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&Transaction) -> Result<T>) -> Result<T> {
        let mut connection = self.0.connection.lock();
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(open(&self.0.path)?),
        };
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        let done = change(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

fn open(path: &Path) -> Result<Connection> {
    if let Some(folder) = path.parent() {
        loomd_private::create_dir_all(folder)?;
    }
    // SQLite would make the file readable for all users, and gives its log the mode of the file.
    let _ = loomd_private::options().write(true).create_new(true).open(path);
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;")?;
    connection.set_prepared_statement_cache_capacity(48);
    let version = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    match version(&connection)? {
        VERSION => {}
        newer if newer > VERSION => return Err(Error::Newer(newer)),
        _ => {
            // Two processes may come here at once: the second one finds the work done.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if version(&transaction)? == 0 {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            transaction.commit()?;
        }
    }
    Ok(connection)
}

/// Unix seconds.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_second()
}

/// A thread's id as it is stored.
pub(crate) fn blob(id: &ThreadId) -> &[u8] {
    id.as_uuid().as_bytes()
}

/// A stored thread's id.
pub(crate) fn thread_id(row: &rusqlite::Row, column: usize) -> rusqlite::Result<ThreadId> {
    let bytes: Vec<u8> = row.get(column)?;
    uuid::Uuid::from_slice(&bytes).map(ThreadId::from).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, Box::new(error))
    })
}

/// A stored JSON value.
pub(crate) fn json<T: serde::de::DeserializeOwned>(row: &rusqlite::Row, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}

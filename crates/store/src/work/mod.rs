//! What threads are to do while they are idle: their goals, and their queues of user messages; the requests that must
//! not be carried out twice; the approvals of their turns. All are stored beside the rollouts, in one database that the
//! processes of a home share. Every change is a transaction, and is on the disk when it is acknowledged. Nothing is opened or created before it is needed.
//!
//! The database does not decide who works: a caller starts idle work only while it holds the thread's lease, and claims
//! a queued message under it.

mod answered;
mod approvals;
mod database;
mod goal;
mod queue;
mod shared;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::ThreadId;
use crate::error::Result;
use crate::file::off_thread;

pub use answered::{EarlierRequest, RequestKey};
pub use approvals::{ApprovalEnd, ApprovalOutcome, ApprovalQuery, Decider, Settled, StaleApprovals, StoredApproval};
pub use goal::Goal;
pub use queue::{ClaimedMessage, Enqueued, MAX_QUEUED, QueuePage, QueuedMessage, REMEMBERED};
pub use shared::{GoalChange, SharedWork};

/// The goals, queues, answered requests and approvals of all threads of a store. Cheap to clone.
#[derive(Clone)]
pub struct WorkStore(Kept);

/// Where a store keeps them.
#[derive(Clone)]
enum Kept {
    Local(Arc<Inner>),
    Shared(Arc<dyn SharedWork>),
}

struct Inner {
    place: Place,
    /// Opened when first needed.
    connection: Mutex<Option<Connection>>,
}

enum Place {
    File(PathBuf),
    Memory,
}

/// A store in memory, which ends with its last clone.
impl Default for WorkStore {
    fn default() -> Self {
        Self(Kept::Local(Arc::new(Inner { place: Place::Memory, connection: Mutex::new(None) })))
    }
}

impl WorkStore {
    /// A store in a database file, which need not exist yet.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(Kept::Local(Arc::new(Inner { place: Place::File(path), connection: Mutex::new(None) })))
    }

    /// A store in a database that several processes share.
    pub fn shared(work: Arc<dyn SharedWork>) -> Self {
        Self(Kept::Shared(work))
    }

    /// The shared database, or `None` when the store is local.
    fn as_shared(&self) -> Option<&dyn SharedWork> {
        match &self.0 {
            Kept::Shared(work) => Some(&**work),
            Kept::Local(_) => None,
        }
    }

    /// The local database.
    fn local(&self) -> Result<Arc<Inner>> {
        match &self.0 {
            Kept::Local(inner) => Ok(Arc::clone(inner)),
            Kept::Shared(_) => Err(crate::Error::Stopped),
        }
    }

    /// Removes all that is stored about a thread that is deleted.
    pub async fn forget(&self, id: ThreadId) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.forget(id).await;
        }
        self.read((), move |connection| {
            for table in ["goals", "queue", "started", "answered", "approvals"] {
                connection.execute(&format!("DELETE FROM {table} WHERE thread_id = ?1"), [id.to_string()])?;
            }
            Ok(())
        })
        .await
    }

    /// Runs a query; `missing` is the result while there is no database.
    async fn read<T: Send + 'static>(
        &self,
        missing: T,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.local()?;
        off_thread(move || inner.read(missing, query)).await
    }

    /// Runs a transaction, which creates the database if there is none.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.local()?;
        off_thread(move || inner.change(change)).await
    }
}

impl Inner {
    fn read<T>(&self, missing: T, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection.lock();
        if connection.is_none() && !self.exists() {
            return Ok(missing);
        }
        query(self.open(&mut connection)?).map_err(|error| self.error(error))
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection.lock();
        let work = || {
            // Immediate: a transaction that reads first and writes later would fail when another process wrote between.
            let connection = self.open(&mut connection)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(|error| self.error(error))?;
            let changed = change(&transaction).map_err(|error| self.error(error))?;
            transaction.commit().map_err(|error| self.error(error))?;
            Ok(changed)
        };
        work()
    }

    fn exists(&self) -> bool {
        match &self.place {
            Place::File(path) => path.exists(),
            Place::Memory => false,
        }
    }

    fn open<'c>(&self, connection: &'c mut Option<Connection>) -> Result<&'c mut Connection> {
        match connection {
            Some(connection) => Ok(connection),
            none => {
                let opened = match &self.place {
                    Place::File(path) => database::open(path),
                    Place::Memory => database::open_in_memory(),
                };
                Ok(none.insert(opened.map_err(|error| self.error(error))?))
            }
        }
    }

    fn error(&self, error: rusqlite::Error) -> crate::Error {
        let place = match &self.place {
            Place::File(path) => crate::error::place(path),
            Place::Memory => "memory".into(),
        };
        database::error(place, &error)
    }
}

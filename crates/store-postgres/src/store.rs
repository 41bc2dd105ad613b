//! The store: what callers use, and what its readers and writers share.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_store::search::{SearchPage, SearchQuery};
use loomd_store::{
    Answer, Error, GitPatch, ListQuery, NodeRow, Page, Reader, Result, SharedStore, Store, StoredThread, ThreadId,
    TurnNotes, WorkStore,
};

use crate::database::{Database, StoreCheck, StoreProbe};
use crate::facts::{COLUMNS, NOW_NS, TABLES, git_patch, shown_name, stored_thread};
use crate::lease::Leases;
use crate::nodes::{SESSION_TTL, Sessions};
use crate::notes::PostgresNotes;
use crate::ownership::Ownerships;
use crate::reader::PostgresReader;
use crate::text::storable;
use crate::wake::{Wake, Wakeups};
use crate::work::PostgresWork;
use crate::{Address, list, search};

/// How a store uses its database.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: Address,
    /// The most connections of the pool. One more is used for wake-ups.
    pub connections: usize,
    /// How long a session lives without being renewed. All nodes have the same.
    pub session_ttl: Duration,
    /// How long a lease that another process holds is waited for.
    pub handover: Duration,
    /// How long a database that was reached before, and is away, is waited for.
    pub patience: Duration,
}

impl Options {
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connections: 16,
            session_ttl: SESSION_TTL,
            handover: Duration::from_secs(1),
            patience: Duration::from_secs(20),
        }
    }
}

/// Threads in PostgreSQL. Nothing is connected before it is needed. Clones share the connections.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
    work: WorkStore,
    notes: Arc<PostgresNotes>,
}

/// What a store shares with its readers and writers.
pub(crate) struct Inner {
    pub database: Arc<Database>,
    pub sessions: Arc<Sessions>,
    pub leases: Arc<Leases>,
    pub ownerships: Arc<Ownerships>,
    pub wake: Wake,
}

impl PostgresStore {
    pub fn new(options: Options) -> Self {
        let database = Arc::new(Database::new(&options));
        let sessions = Arc::new(Sessions::new(options.session_ttl));
        let ownerships = Arc::new(Ownerships::default());
        let leases =
            Leases::new(Arc::clone(&database), Arc::clone(&sessions), Arc::clone(&ownerships), options.handover);
        let work = WorkStore::shared(Arc::new(PostgresWork::new(Arc::clone(&database))));
        let wake = Wake::new(Arc::clone(&database));
        let inner = Arc::new(Inner { database, sessions, leases: Arc::new(leases), ownerships, wake });
        let notes = Arc::new(PostgresNotes(Arc::clone(&inner)));
        Self { inner, work, notes }
    }

    /// Connects, checks the server and makes the tables that are missing. Without it, the first use does so.
    pub async fn connect(&self) -> Result<()> {
        self.inner.database.client().await.map(drop)
    }

    /// Looks at the server, the tables' version, the rights and the nodes, and changes nothing.
    pub async fn probe(&self) -> Result<StoreProbe> {
        self.inner.database.probe().await
    }

    /// Checks the database and its records without changing it.
    pub async fn check(&self) -> Result<StoreCheck> {
        self.inner.database.check().await
    }

    /// The nodes that share the store. Unlike the other operations, it makes no tables.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>> {
        self.inner.database.nodes().await
    }

    /// Ends the session of this process, if it has one. Leases that it still holds are free at once, and its writers
    /// fail.
    pub async fn end_session(&self) -> Result<()> {
        match self.inner.sessions.current().await {
            Some(session) => SharedStore::end(self, session).await,
            None => Ok(()),
        }
    }

    /// How the database would run a list, for tests and measurements.
    #[doc(hidden)]
    pub async fn explain_list(&self, query: &ListQuery) -> Result<String> {
        list::explain(&self.inner.database, query).await
    }

    /// Changes of threads, by any process.
    pub fn wakeups(&self) -> Wakeups {
        self.inner.wake.subscribe()
    }

    /// Where the threads are, for people.
    pub fn place(&self) -> String {
        self.inner.database.place.name().to_owned()
    }

    /// Gives a thread the time of change that it had elsewhere.
    pub(crate) async fn set_updated(&self, id: ThreadId, updated_ns: i64) -> Result<()> {
        let database = &self.inner.database;
        let client = database.waiting_client().await?;
        let set = "UPDATE loomd.thread SET updated_ns = $2 WHERE id = $1";
        let set = client.execute(set, &[id.as_uuid(), &updated_ns]).await;
        set.map(drop).map_err(|error| database.place.query(&error))
    }

    async fn find_row(&self, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        let database = &self.inner.database;
        let client = database.client().await?;
        let failed = |error: tokio_postgres::Error| database.place.query(&error);
        let query = format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE t.id = $1 AND ($2::boolean IS NULL OR t.archived = $2::boolean)"
        );
        let query = client.prepare_cached(&query).await.map_err(failed)?;
        match client.query_opt(&query, &[id.as_uuid(), &archived]).await.map_err(failed)? {
            Some(row) => stored_thread(&database.place, &row),
            None => Err(Error::NotFound { id }),
        }
    }

    /// Changes a thread that is archived or not, under a lease of its own. `change` has the thread as `$1`; each of its
    /// statements is run, in one transaction that also checks the lease.
    async fn change(&self, id: ThreadId, archived: Option<bool>, change: &[&str]) -> Result<()> {
        self.find(id, archived).await?;
        let lease = self.inner.leases.take_for_change(id).await?;
        let database = &self.inner.database;
        let failed = |error: tokio_postgres::Error| database.place.query(&error);
        let mut client = database.waiting_client().await?;
        let transaction = client.transaction().await.map_err(failed)?;
        let held = "SELECT 1 FROM loomd.lease WHERE thread_id = $1 AND session = $2 AND token = $3 FOR UPDATE";
        let held = transaction.query_opt(held, &[id.as_uuid(), &lease.session, &lease.token]).await;
        if held.map_err(failed)?.is_none() {
            return Err(Error::StaleLease { id });
        }
        let there = "SELECT 1 FROM loomd.thread WHERE id = $1 AND ($2::boolean IS NULL OR archived = $2::boolean)";
        if transaction.query_opt(there, &[id.as_uuid(), &archived]).await.map_err(failed)?.is_none() {
            return Err(Error::NotFound { id });
        }
        for statement in change {
            transaction.execute(*statement, &[id.as_uuid()]).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)?;
        self.inner.wake.changed(id);
        Ok(())
    }

    /// One column of a row about a thread.
    async fn column<T: for<'r> tokio_postgres::types::FromSql<'r>>(
        &self,
        query: &'static str,
        id: ThreadId,
    ) -> Result<Option<T>> {
        let database = &self.inner.database;
        let read = || async move {
            let client = database.client().await?;
            let failed = |error: tokio_postgres::Error| database.place.query(&error);
            let query = client.prepare_cached(query).await.map_err(failed)?;
            let row = client.query_opt(&query, &[id.as_uuid()]).await.map_err(failed)?;
            Ok(row.and_then(|row| row.get::<_, Option<T>>(0)))
        };
        database.retry(read).await
    }
}

impl Store for PostgresStore {
    fn create(&self, id: ThreadId, _: Timestamp) -> Arc<dyn Reader> {
        Arc::new(PostgresReader::new(Arc::clone(&self.inner), id, true))
    }

    fn open(&self, id: ThreadId) -> Answer<'_, Arc<dyn Reader>> {
        Box::pin(async move {
            self.find(id, None).await?;
            Ok(Arc::new(PostgresReader::new(Arc::clone(&self.inner), id, false)) as Arc<dyn Reader>)
        })
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        Box::pin(self.inner.database.retry(move || self.find_row(id, archived)))
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        Box::pin(async move { self.inner.database.retry(|| list::list(&self.inner.database, &query)).await })
    }

    fn search(&self, query: SearchQuery) -> Answer<'_, SearchPage> {
        Box::pin(async move { self.inner.database.retry_long(|| search::search(&self.inner.database, &query)).await })
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        Box::pin(async move {
            let name: Option<String> = self.column("SELECT name FROM loomd.fact WHERE thread_id = $1", id).await?;
            Ok(shown_name(name.as_deref()))
        })
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let database = &self.inner.database;
            let client = database.waiting_client().await?;
            let rename = "INSERT INTO loomd.fact (thread_id, name) VALUES ($1, $2) \
                          ON CONFLICT (thread_id) DO UPDATE SET name = excluded.name";
            let renamed = client.execute(rename, &[id.as_uuid(), &storable(name).as_ref()]).await;
            renamed.map(drop).map_err(|error| database.place.query(&error))
        })
    }

    fn archive(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(self.change(id, Some(false), &["UPDATE loomd.thread SET archived = true WHERE id = $1"]))
    }

    fn unarchive(&self, id: ThreadId) -> Answer<'_, StoredThread> {
        Box::pin(async move {
            let change = format!("UPDATE loomd.thread SET archived = false, updated_ns = {NOW_NS} WHERE id = $1");
            self.change(id, Some(true), &[&change]).await?;
            self.find(id, None).await
        })
    }

    fn delete(&self, id: ThreadId) -> Answer<'_, ()> {
        let change = [
            "DELETE FROM loomd.event WHERE thread_id = $1",
            "DELETE FROM loomd.blob WHERE thread_id = $1",
            "DELETE FROM loomd.fact WHERE thread_id = $1",
            "DELETE FROM loomd.goal WHERE thread_id = $1",
            "DELETE FROM loomd.queue WHERE thread_id = $1",
            "DELETE FROM loomd.started WHERE thread_id = $1",
            "DELETE FROM loomd.approval WHERE thread_id = $1",
            "DELETE FROM loomd.answered WHERE thread_id = $1",
            "DELETE FROM loomd.turn_note WHERE thread_id = $1",
            "DELETE FROM loomd.thread WHERE id = $1",
        ];
        Box::pin(async move { self.change(id, None, &change).await })
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        Box::pin(async move {
            let text: Option<String> = self.column("SELECT git_patch FROM loomd.fact WHERE thread_id = $1", id).await?;
            git_patch(&self.inner.database.place, text.as_deref())
        })
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        Box::pin(async move {
            let database = &self.inner.database;
            let failed = |error: tokio_postgres::Error| database.place.query(&error);
            let mut client = database.waiting_client().await?;
            let transaction = client.transaction().await.map_err(failed)?;
            // Makes the row if there is none, and locks it either way.
            let lock = "INSERT INTO loomd.fact (thread_id) VALUES ($1) \
                        ON CONFLICT (thread_id) DO UPDATE SET thread_id = excluded.thread_id RETURNING git_patch";
            let row = transaction.query_one(lock, &[id.as_uuid()]).await.map_err(failed)?;
            let mut merged = git_patch(&database.place, row.get(0))?.unwrap_or_default();
            merged.merge(patch);
            let text = serde_json::to_string(&merged)?;
            let write = "UPDATE loomd.fact SET git_patch = $2 WHERE thread_id = $1";
            transaction.execute(write, &[id.as_uuid(), &text]).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)
        })
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.column("SELECT bytes FROM loomd.derived WHERE thread_id = $1", id))
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(async move {
            let database = &self.inner.database;
            let client = database.client().await?;
            let keep = "INSERT INTO loomd.derived (thread_id, bytes) SELECT id, $2 FROM loomd.thread WHERE id = $1 \
                        ON CONFLICT (thread_id) DO UPDATE SET bytes = excluded.bytes";
            let kept = client.execute(keep, &[id.as_uuid(), &bytes]).await;
            kept.map(drop).map_err(|error| database.place.query(&error))
        })
    }

    fn work(&self) -> &WorkStore {
        &self.work
    }

    fn turn_notes(&self) -> Option<&dyn TurnNotes> {
        Some(&*self.notes)
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

//! Sessions: a process that takes leases has one, and renews it with the database's clock. A session that has expired
//! once stays dead; the process gets a new one, and finds its leases gone where others took them.
//!
//! A node registers its session and renews it by itself. Another process, or a node that has none, gets one when it
//! first takes a lease, and this module renews it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deadpool_postgres::Object;
use loomd_store::{Failure, NodeFacts, NodeRow, Result};
use uuid::Uuid;

use crate::database::Database;
use crate::error::Place;

/// How long a session lives without being renewed.
pub const SESSION_TTL: Duration = Duration::from_secs(15);

/// How often a session is renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// Registers a session, or renews it when it is registered and live. Sessions that expired long ago are removed: a lease
/// that names one is as free as one whose session has just expired.
const REGISTER: &str = "
    WITH gone AS (
        DELETE FROM loomd.node WHERE expires_at < clock_timestamp() - interval '1 hour' AND session <> $1
    )
    INSERT INTO loomd.node AS n (session, url, labels, started_at, expires_at)
    VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp() + make_interval(secs => $4))
    ON CONFLICT (session) DO UPDATE SET url = excluded.url, labels = excluded.labels, expires_at = excluded.expires_at
    WHERE n.expires_at > clock_timestamp()";

/// The current session of a store.
pub(crate) struct Sessions {
    pub ttl: Duration,
    current: tokio::sync::Mutex<Option<Uuid>>,
    /// Whether a node has registered one.
    is_node: AtomicBool,
}

impl Sessions {
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, current: tokio::sync::Mutex::new(None), is_node: AtomicBool::new(false) }
    }

    /// Whether this process is a node: it writes only what it owns.
    pub fn is_node(&self) -> bool {
        self.is_node.load(Ordering::Relaxed)
    }

    /// The session that leases are taken for, if there is one.
    pub async fn current(&self) -> Option<Uuid> {
        *self.current.lock().await
    }

    fn ttl_seconds(&self) -> f64 {
        self.ttl.as_secs_f64()
    }

    /// The live session, registered when there is none.
    pub async fn get(self: &Arc<Self>, database: &Arc<Database>) -> Result<Uuid> {
        let mut current = self.current.lock().await;
        if let Some(session) = *current {
            return Ok(session);
        }
        let session = Uuid::now_v7();
        self.insert(database, session, &NodeFacts::default()).await?;
        *current = Some(session);
        tokio::spawn(keep_alive(Arc::downgrade(self), Arc::downgrade(database), session));
        Ok(session)
    }

    /// Registers the session of a node, which renews it by itself. Leases are taken for it from now on.
    pub async fn register(&self, database: &Database, session: Uuid, node: &NodeFacts) -> Result<()> {
        self.is_node.store(true, Ordering::Relaxed);
        let mut current = self.current.lock().await;
        self.insert(database, session, node).await?;
        *current = Some(session);
        Ok(())
    }

    async fn insert(&self, database: &Database, session: Uuid, node: &NodeFacts) -> Result<()> {
        let client = database.client().await?;
        let registered = client.execute(REGISTER, &[&session, &node.url, &node.labels, &self.ttl_seconds()]).await;
        match registered.map_err(|error| database.place.query(&error))? {
            0 => Err(database.place.error(Failure::Other, format!("session {session} has expired"))),
            _ => Ok(()),
        }
    }

    /// Forgets a session that the database no longer counts as live. The next caller registers another.
    pub async fn lost(&self, session: Uuid) {
        let mut current = self.current.lock().await;
        if *current == Some(session) {
            *current = None;
        }
    }

    /// Ends a session at once: its leases are free.
    pub async fn end(&self, database: &Database, session: Uuid) -> Result<()> {
        self.lost(session).await;
        let client = database.client().await?;
        let ended = client.execute("DELETE FROM loomd.node WHERE session = $1", &[&session]).await;
        ended.map(drop).map_err(|error| database.place.query(&error))
    }

    /// Marks a session as one that takes no more threads.
    pub async fn drain(&self, database: &Database, session: Uuid) -> Result<()> {
        let client = database.client().await?;
        let marked = client.execute("UPDATE loomd.node SET draining = true WHERE session = $1", &[&session]).await;
        marked.map(drop).map_err(|error| database.place.query(&error))
    }

    /// Renews a session; `false` when it has expired or ended. Fails while there is still time for another try when the
    /// database does not answer.
    pub async fn renew(&self, database: &Database, session: Uuid) -> Result<bool> {
        database.answered(self.ttl / 3, self.renew_once(database, session)).await
    }

    async fn renew_once(&self, database: &Database, session: Uuid) -> Result<bool> {
        let client = database.client().await?;
        let renew = "UPDATE loomd.node SET expires_at = clock_timestamp() + make_interval(secs => $2) \
                     WHERE session = $1 AND expires_at > clock_timestamp()";
        let renewed = client.execute(renew, &[&session, &self.ttl_seconds()]).await;
        let is_live = renewed.map_err(|error| database.place.query(&error))? == 1;
        if !is_live {
            self.lost(session).await;
        }
        Ok(is_live)
    }
}

/// Renews a session until it is lost or its store is gone. A database that does not answer is tried again: the session
/// may still be live when it does.
async fn keep_alive(sessions: Weak<Sessions>, database: Weak<Database>, session: Uuid) {
    loop {
        let Some(pause) = sessions.upgrade().map(|sessions| RENEWAL.min(sessions.ttl / 3)) else { return };
        tokio::time::sleep(pause).await;
        let (Some(sessions), Some(database)) = (sessions.upgrade(), database.upgrade()) else { return };
        if *sessions.current.lock().await != Some(session) {
            return;
        }
        match sessions.renew(&database, session).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(%session, "the session at the database has expired: another one is made when needed");
                return;
            }
            Err(error) => tracing::warn!(%session, %error, "the session at the database cannot be renewed"),
        }
    }
}

/// All nodes that are registered.
pub(crate) async fn list(client: &Object, place: &Place) -> Result<Vec<NodeRow>> {
    let query = "
        SELECT session, url, labels, draining,
            (SELECT count(*) FROM loomd.lease l WHERE l.session = n.session),
            (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
        FROM loomd.node n ORDER BY started_at, session";
    let rows = client.query(query, &[]).await.map_err(|error| place.query(&error))?;
    let node = |row: &tokio_postgres::Row| NodeRow {
        session: row.get(0),
        facts: NodeFacts { url: row.get(1), labels: row.get(2) },
        draining: row.get(3),
        threads: row.get(4),
        expires_in_ms: row.get(5),
    };
    Ok(rows.iter().map(node).collect())
}

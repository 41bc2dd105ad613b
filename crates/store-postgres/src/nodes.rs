//! Sessions: a process that takes leases has one, and renews it with the database's clock. A session that has expired
//! once stays dead; the process gets a new one, and finds its leases gone where others took them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use loomd_store::Result;
use uuid::Uuid;

use crate::database::Database;

/// How long a session lives without being renewed.
pub const SESSION_TTL: Duration = Duration::from_secs(15);

/// How often a session is renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub session: Uuid,
    /// Where other nodes reach it; `None` for a process that takes no requests.
    pub url: Option<String>,
    pub labels: Vec<String>,
    pub draining: bool,
    /// Leases that it holds.
    pub leases: i64,
    /// Until the session expires, by the database's clock. Negative when it has.
    pub expires_in_ms: i64,
}

/// The current session of a store.
pub(crate) struct Sessions {
    /// Where other nodes reach this one.
    url: Option<String>,
    labels: Vec<String>,
    ttl: Duration,
    current: tokio::sync::Mutex<Option<Uuid>>,
}

impl Sessions {
    pub fn new(url: Option<String>, labels: Vec<String>, ttl: Duration) -> Self {
        Self { url, labels, ttl, current: tokio::sync::Mutex::new(None) }
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
        let client = database.client().await?;
        // Sessions that ended without a word long ago are of no use to anyone.
        let register = "
            WITH gone AS (
                DELETE FROM loomd.node n WHERE n.expires_at < clock_timestamp() - interval '1 hour'
                AND NOT EXISTS (SELECT 1 FROM loomd.lease l WHERE l.session = n.session)
            )
            INSERT INTO loomd.node (session, url, labels, started_at, expires_at)
            VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp() + make_interval(secs => $4))";
        let registered = client.execute(register, &[&session, &self.url, &self.labels, &self.ttl_seconds()]).await;
        registered.map_err(|error| database.place.query(&error))?;
        *current = Some(session);
        tokio::spawn(renew(Arc::downgrade(self), Arc::downgrade(database), session));
        Ok(session)
    }

    /// Forgets a session that the database no longer counts as live. The next caller registers another.
    pub async fn lost(&self, session: Uuid) {
        let mut current = self.current.lock().await;
        if *current == Some(session) {
            *current = None;
        }
    }

    /// Ends the session at once: its leases are free.
    pub async fn end(&self, database: &Database) -> Result<()> {
        let Some(session) = self.current.lock().await.take() else { return Ok(()) };
        let client = database.client().await?;
        let ended = client.execute("DELETE FROM loomd.node WHERE session = $1", &[&session]).await;
        ended.map(drop).map_err(|error| database.place.query(&error))
    }

    /// Marks the session as one that takes no more threads.
    pub async fn drain(self: &Arc<Self>, database: &Arc<Database>) -> Result<()> {
        let session = self.get(database).await?;
        let client = database.client().await?;
        let marked = client.execute("UPDATE loomd.node SET draining = true WHERE session = $1", &[&session]).await;
        marked.map(drop).map_err(|error| database.place.query(&error))
    }
}

/// Renews a session until it is lost or its store is gone. A database that does not answer is tried again: the session
/// may still be live when it does.
async fn renew(sessions: Weak<Sessions>, database: Weak<Database>, session: Uuid) {
    loop {
        let Some(pause) = sessions.upgrade().map(|sessions| RENEWAL.min(sessions.ttl / 3)) else { return };
        tokio::time::sleep(pause).await;
        let (Some(sessions), Some(database)) = (sessions.upgrade(), database.upgrade()) else { return };
        if *sessions.current.lock().await != Some(session) {
            return;
        }
        match renewed(&sessions, &database, session).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(%session, "the session at the database has expired: another one is made when needed");
                sessions.lost(session).await;
                return;
            }
            Err(error) => tracing::warn!(%session, %error, "the session at the database cannot be renewed"),
        }
    }
}

async fn renewed(sessions: &Sessions, database: &Database, session: Uuid) -> Result<bool> {
    let client = database.client().await?;
    let renew = "UPDATE loomd.node SET expires_at = clock_timestamp() + make_interval(secs => $2) \
                 WHERE session = $1 AND expires_at > clock_timestamp()";
    let rows = client.execute(renew, &[&session, &sessions.ttl_seconds()]).await;
    rows.map(|rows| rows == 1).map_err(|error| database.place.query(&error))
}

/// All nodes that are registered.
pub(crate) async fn list(database: &Database) -> Result<Vec<NodeRow>> {
    let client = database.client().await?;
    let query = "
        SELECT session, url, labels, draining,
            (SELECT count(*) FROM loomd.lease l WHERE l.session = n.session),
            (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
        FROM loomd.node n ORDER BY started_at, session";
    let rows = client.query(query, &[]).await.map_err(|error| database.place.query(&error))?;
    let node = |row: &tokio_postgres::Row| NodeRow {
        session: row.get(0),
        url: row.get(1),
        labels: row.get(2),
        draining: row.get(3),
        leases: row.get(4),
        expires_in_ms: row.get(5),
    };
    Ok(rows.iter().map(node).collect())
}

//! The lease of a thread: a row that names the session that holds it, a token that is new for every holder, and the
//! epoch. Whoever changes records checks the token in the same statement, so that a holder that was taken over is fenced
//! off by the database itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use loomd_store::{Error, Failure, Result, ThreadId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::Database;
use crate::nodes::Sessions;

/// The pauses between two tries to take a lease that is held.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How often, and how far apart, giving a lease back is tried while the database does not answer.
const RELEASES: usize = 60;
const RELEASE_PAUSE: Duration = Duration::from_secs(1);

/// Takes a lease that is free, or whose session has expired. The session of the taker must be live. Whether the holder's
/// session has expired may be judged by an older snapshot than the row's own; the token keeps that harmless.
const TAKE: &str = "
    INSERT INTO loomd.lease AS l (thread_id, session, token, epoch, reader)
    SELECT $1, $2, nextval('loomd.lease_token'), extract(epoch FROM clock_timestamp())::bigint, $3
    FROM loomd.node own WHERE own.session = $2 AND own.expires_at > clock_timestamp()
    ON CONFLICT (thread_id) DO UPDATE SET
        session = excluded.session, token = excluded.token, reader = excluded.reader,
        epoch = CASE WHEN l.session IS NULL AND l.reader = excluded.reader THEN l.epoch
            ELSE greatest(l.epoch + 1, excluded.epoch) END
    WHERE l.session IS NULL OR NOT EXISTS (
        SELECT 1 FROM loomd.node n WHERE n.session = l.session AND n.expires_at > clock_timestamp())
    RETURNING token, epoch";

/// Why a lease was not taken.
const HOLDER: &str = "
    SELECT EXISTS (SELECT 1 FROM loomd.node WHERE session = $2 AND expires_at > clock_timestamp()),
        (SELECT token FROM loomd.lease WHERE thread_id = $1 AND session IS NOT NULL)";

const RELEASE: &str = "UPDATE loomd.lease SET session = NULL WHERE thread_id = $1 AND token = $2";

/// Takes leases for one store.
pub(crate) struct Leases {
    database: Arc<Database>,
    sessions: Arc<Sessions>,
    /// How long a lease of another process is waited for: its writer may have been dropped a moment ago.
    handover: Duration,
    /// The tokens of the writers of this store that were not dropped.
    active: Mutex<HashSet<i64>>,
}

impl Leases {
    pub fn new(database: Arc<Database>, sessions: Arc<Sessions>, handover: Duration) -> Self {
        Self { database, sessions, handover, active: Mutex::new(HashSet::new()) }
    }

    /// Takes a thread's lease for a reader. Runs to its end when its caller gives up, and then gives the lease back.
    pub async fn take(self: &Arc<Self>, thread: ThreadId, reader: Uuid) -> Result<HeldLease> {
        let leases = Arc::clone(self);
        let taken = tokio::spawn(async move { leases.take_or_wait(thread, reader).await }).await;
        taken.map_err(|_| Error::Stopped)?
    }

    async fn take_or_wait(self: Arc<Self>, thread: ThreadId, reader: Uuid) -> Result<HeldLease> {
        let deadline = Instant::now() + self.handover;
        let mut pause = FIRST_PAUSE;
        loop {
            let session = self.sessions.get(&self.database).await?;
            let client = self.database.client().await?;
            let failed = |error: tokio_postgres::Error| self.database.place.query(&error);
            let take = client.prepare_cached(TAKE).await.map_err(failed)?;
            if let Some(row) = client.query_opt(&take, &[thread.as_uuid(), &session, &reader]).await.map_err(failed)? {
                let (token, epoch): (i64, i64) = (row.get(0), row.get(1));
                self.active.lock().insert(token);
                let epoch = u64::try_from(epoch).unwrap_or_default();
                return Ok(HeldLease { leases: self, runtime: Handle::current(), thread, session, token, epoch });
            }
            let holder = client.query_one(HOLDER, &[thread.as_uuid(), &session]).await.map_err(failed)?;
            drop(client);
            if !holder.get::<_, bool>(0) {
                self.sessions.lost(session).await;
                if Instant::now() >= deadline {
                    let reason = "this process's session expires before it is used";
                    return Err(self.database.place.error(Failure::Other, reason));
                }
            } else if let Some(token) = holder.get::<_, Option<i64>>(1) {
                if self.active.lock().contains(&token) {
                    return Err(Error::Held { id: thread, pid: Some(std::process::id()) });
                }
                if Instant::now() >= deadline {
                    return Err(Error::Held { id: thread, pid: None });
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn release(&self, thread: ThreadId, token: i64) -> Result<()> {
        let client = self.database.client().await?;
        let released = client.execute(RELEASE, &[thread.as_uuid(), &token]).await;
        released.map(drop).map_err(|error| self.database.place.query(&error))
    }
}

/// A lease that was taken. Given back when it is dropped, on the runtime that took it.
pub(crate) struct HeldLease {
    leases: Arc<Leases>,
    runtime: Handle,
    pub thread: ThreadId,
    pub session: Uuid,
    pub token: i64,
    pub epoch: u64,
}

impl HeldLease {
    /// Fails when another holder has taken the thread over.
    pub async fn check(&self) -> Result<()> {
        let database = &self.leases.database;
        let client = database.client().await?;
        let query = "SELECT 1 FROM loomd.lease WHERE thread_id = $1 AND session = $2 AND token = $3";
        let row = client.query_opt(query, &[self.thread.as_uuid(), &self.session, &self.token]).await;
        match row.map_err(|error| database.place.query(&error))? {
            Some(_) => Ok(()),
            None => Err(Error::StaleLease { id: self.thread }),
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.leases.active.lock().remove(&self.token);
        let (leases, thread, token) = (Arc::clone(&self.leases), self.thread, self.token);
        // A lease that cannot be given back stays with the session, which ends with the process.
        self.runtime.spawn(async move {
            for _ in 0..RELEASES {
                match leases.release(thread, token).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%thread, %error, "a lease cannot be given back"),
                }
                tokio::time::sleep(RELEASE_PAUSE).await;
            }
        });
    }
}

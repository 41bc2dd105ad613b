//! What nodes need of the store that they share: their sessions, and which of them owns a thread.
//!
//! An operation is repeated while the database is away when doing it twice is the same as doing it once. Two are not
//! repeated: a session's owner renews it by itself and has to know at once when that fails, and a session that cannot be
//! ended expires.

use std::sync::Arc;
use std::time::Duration;

use loomd_store::{Answer, Error, NodeFacts, NodeRow, PoolFigures, Result, SharedStore, Taking, ThreadId};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::PostgresStore;
use crate::nodes;
use crate::store::Inner;

/// Takes a thread for a session, in one statement. `is_live` waits for a renewal that is on its way, so that a session
/// that is renewed in time loses nothing. The row also says why nothing was taken: whether the taker's session is live,
/// and who holds the thread.
const TAKE: &str = "
    WITH own AS MATERIALIZED (SELECT 1 FROM loomd.node WHERE session = $2 AND expires_at > clock_timestamp()),
    taken AS (
        INSERT INTO loomd.lease AS l (thread_id, session, token, epoch, reader)
        SELECT $1::uuid, $2::uuid, nextval('loomd.lease_token'), extract(epoch FROM clock_timestamp())::bigint, $3::uuid FROM own
        ON CONFLICT (thread_id) DO UPDATE SET
            session = excluded.session, token = excluded.token, reader = excluded.reader,
            epoch = greatest(l.epoch + 1, excluded.epoch)
        WHERE l.session IS NULL OR l.session = excluded.session OR NOT loomd.is_live(l.session)
        RETURNING epoch
    )
    SELECT (SELECT epoch FROM taken), EXISTS (SELECT 1 FROM own),
        (SELECT session FROM loomd.lease WHERE thread_id = $1)";

const OWNER: &str = "
    SELECT l.session FROM loomd.lease l JOIN loomd.node n ON n.session = l.session
    WHERE l.thread_id = $1 AND n.expires_at > clock_timestamp()";

const RELEASE: &str = "UPDATE loomd.lease SET session = NULL WHERE thread_id = $1 AND session = $2 AND epoch = $3";

/// In any order, so that threads that a node cannot take do not hide the others.
const ABANDONED: &str = "
    SELECT note.thread_id FROM loomd.turn_note note LEFT JOIN loomd.lease l ON l.thread_id = note.thread_id
    WHERE octet_length(note.lines) > 0 AND NOT EXISTS (
        SELECT 1 FROM loomd.node n WHERE n.session = l.session AND n.expires_at > clock_timestamp())
    ORDER BY random() LIMIT 100";

/// How often a take is tried whose refusal cannot be explained: the holder let go meanwhile.
const TAKES: usize = 10;
const PAUSE: Duration = Duration::from_millis(10);

impl Inner {
    async fn take_owned(&self, thread: ThreadId, session: Uuid) -> Result<Taking> {
        // A writer of this process, which no node owns the thread for, is about to be dropped.
        let deadline = Instant::now() + self.leases.handover;
        while self.leases.is_written(thread) && Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
        }
        let mut holder = None;
        for _ in 0..TAKES {
            let row = {
                let client = self.database.client().await?;
                let failed = |error: tokio_postgres::Error| self.database.place.query(&error);
                let take = client.prepare_cached(TAKE).await.map_err(failed)?;
                client.query_one(&take, &[thread.as_uuid(), &session, &Uuid::now_v7()]).await.map_err(failed)?
            };
            if let Some(epoch) = row.get::<_, Option<i64>>(0) {
                self.ownerships.taken(thread, session, epoch);
                return Ok(Taking::Taken { epoch: u64::try_from(epoch).unwrap_or_default() });
            }
            if !row.get::<_, bool>(1) {
                return Ok(Taking::NoSession);
            }
            holder = row.get::<_, Option<Uuid>>(2);
            if let Some(session) = holder.filter(|holder| *holder != session) {
                return Ok(Taking::Held { session });
            }
            tokio::time::sleep(PAUSE).await;
        }
        match holder {
            Some(session) => Ok(Taking::Held { session }),
            None => Err(Error::Held { id: thread, pid: None }),
        }
    }

    async fn release_owned(&self, thread: ThreadId, session: Uuid, epoch: i64) -> Result<()> {
        let client = self.database.client().await?;
        let released = client.execute(RELEASE, &[thread.as_uuid(), &session, &epoch]).await;
        released.map(drop).map_err(|error| self.database.place.query(&error))
    }

    async fn owner(&self, thread: ThreadId) -> Result<Option<Uuid>> {
        let client = self.database.client().await?;
        let failed = |error: tokio_postgres::Error| self.database.place.query(&error);
        let owner = client.prepare_cached(OWNER).await.map_err(failed)?;
        let row = client.query_opt(&owner, &[thread.as_uuid()]).await.map_err(failed)?;
        Ok(row.map(|row| row.get(0)))
    }

    async fn abandoned(&self) -> Result<Vec<ThreadId>> {
        let client = self.database.client().await?;
        let rows = client.query(ABANDONED, &[]).await.map_err(|error| self.database.place.query(&error))?;
        Ok(rows.iter().map(|row| row.get::<_, Uuid>(0).into()).collect())
    }
}

fn number(epoch: u64) -> i64 {
    i64::try_from(epoch).unwrap_or(i64::MAX)
}

impl SharedStore for PostgresStore {
    /// May be repeated: a session that is registered already, and lives, is renewed.
    fn register(&self, session: Uuid, node: NodeFacts) -> Answer<'_, ()> {
        Box::pin(async move {
            let inner = &self.inner;
            inner.database.retry(|| inner.sessions.register(&inner.database, session, &node)).await?;
            inner.ownerships.forget_ended();
            if node.url.is_some() {
                inner.wake.announce();
            }
            Ok(())
        })
    }

    fn renew(&self, session: Uuid) -> Answer<'_, bool> {
        Box::pin(self.inner.sessions.renew(&self.inner.database, session))
    }

    /// May be repeated: sets a mark.
    fn drain(&self, session: Uuid) -> Answer<'_, ()> {
        let (sessions, database) = (&self.inner.sessions, &self.inner.database);
        Box::pin(database.retry(move || sessions.drain(database, session)))
    }

    fn end(&self, session: Uuid) -> Answer<'_, ()> {
        self.inner.ownerships.end_session(session);
        Box::pin(self.inner.sessions.end(&self.inner.database, session))
    }

    fn session_ttl(&self) -> Duration {
        self.inner.sessions.ttl
    }

    /// May be repeated: the session may take again what it took, with a greater epoch. Runs to its end when its caller
    /// gives up, and then lets the thread go.
    fn take(&self, thread: ThreadId, session: Uuid) -> Answer<'_, Taking> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            tokio::spawn(async move {
                let taken = inner.database.retry(|| inner.take_owned(thread, session)).await;
                if let Err(Ok(Taking::Taken { epoch })) = answer.send(taken) {
                    let epoch = number(epoch);
                    inner.ownerships.release(thread, session, epoch);
                    let released = inner.database.retry(|| inner.release_owned(thread, session, epoch)).await;
                    if let Err(error) = released {
                        tracing::warn!(%thread, %error, "a thread cannot be let go");
                    }
                }
            });
            answered.await.map_err(|_| Error::Stopped)?
        })
    }

    fn owner(&self, thread: ThreadId) -> Answer<'_, Option<Uuid>> {
        let inner = &self.inner;
        Box::pin(inner.database.retry(move || inner.owner(thread)))
    }

    /// May be repeated: an ownership ends once. Its writers fail from the call on; the database is told also when the
    /// caller gives up.
    fn release(&self, thread: ThreadId, session: Uuid, epoch: u64) -> Answer<'_, ()> {
        let (inner, epoch) = (Arc::clone(&self.inner), number(epoch));
        inner.ownerships.release(thread, session, epoch);
        Box::pin(async move {
            let released =
                tokio::spawn(async move { inner.database.retry(|| inner.release_owned(thread, session, epoch)).await });
            released.await.map_err(|_| Error::Stopped)?
        })
    }

    fn abandon(&self, thread: ThreadId) {
        self.inner.ownerships.abandon(thread);
    }

    fn nodes(&self) -> Answer<'_, Vec<NodeRow>> {
        let database = &self.inner.database;
        Box::pin(database.retry(move || async move { nodes::list(&database.client().await?, &database.place).await }))
    }

    fn abandoned(&self) -> Answer<'_, Vec<ThreadId>> {
        let inner = &self.inner;
        Box::pin(inner.database.retry(move || inner.abandoned()))
    }

    fn pool(&self) -> PoolFigures {
        self.inner.database.pool_figures()
    }
}

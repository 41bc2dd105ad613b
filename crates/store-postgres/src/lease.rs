//! The lease of a thread: a row that names the session that holds it, a token that is new for every holder, and the
//! epoch. Whoever changes records checks the token in the same statement, so that a holder that was taken over is fenced
//! off by the database itself.
//!
//! The lease of a thread that a node owns stays with the node's session; its writers only get a token each. The lease of
//! another thread is taken for one writer, and given back when that is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use loomd_store::{Error, Failure, Result, ThreadId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::Database;
use crate::nodes::Sessions;
use crate::ownership::{Ownership, Ownerships, WriterSlot};

/// The pauses between two tries to take a lease that is held.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How often, and how far apart, giving a lease back is tried while the database does not answer.
const RELEASES: usize = 60;
const RELEASE_PAUSE: Duration = Duration::from_secs(1);

/// Takes a lease that is free, or whose session has expired. The session of the taker must be live. With `$4`, also one
/// that an earlier try for the same reader may have taken.
const TAKE: &str = "
    INSERT INTO loomd.lease AS l (thread_id, session, token, epoch, reader)
    SELECT $1, $2, nextval('loomd.lease_token'), extract(epoch FROM clock_timestamp())::bigint, $3
    FROM loomd.node own WHERE own.session = $2 AND own.expires_at > clock_timestamp()
    ON CONFLICT (thread_id) DO UPDATE SET
        session = excluded.session, token = excluded.token, reader = excluded.reader,
        epoch = CASE WHEN l.session IS NULL AND l.reader = excluded.reader THEN l.epoch
            ELSE greatest(l.epoch + 1, excluded.epoch) END
    WHERE l.session IS NULL OR NOT loomd.is_live(l.session)
        OR ($4 AND l.session = excluded.session AND l.reader = excluded.reader)
    RETURNING token, epoch";

/// Why a lease was not taken.
const HOLDER: &str = "
    SELECT EXISTS (SELECT 1 FROM loomd.node WHERE session = $2 AND expires_at > clock_timestamp()),
        (SELECT token FROM loomd.lease WHERE thread_id = $1 AND session IS NOT NULL)";

const NEW_TOKEN: &str = "SELECT made, ends, complete FROM loomd.new_token($1, $2, $3)";

const RELEASE: &str = "UPDATE loomd.lease SET session = NULL WHERE thread_id = $1 AND token = $2";

/// Takes leases for one store.
pub(crate) struct Leases {
    database: Arc<Database>,
    sessions: Arc<Sessions>,
    /// How long a lease of another process is waited for: its writer may have been dropped a moment ago.
    pub handover: Duration,
    ownerships: Arc<Ownerships>,
    /// The tokens of the writers of this store that were not dropped, without those of owned threads.
    active: Mutex<HashMap<i64, ThreadId>>,
}

impl Leases {
    pub fn new(
        database: Arc<Database>,
        sessions: Arc<Sessions>,
        ownerships: Arc<Ownerships>,
        handover: Duration,
    ) -> Self {
        Self { database, sessions, handover, ownerships, active: Mutex::new(HashMap::new()) }
    }

    /// Whether a writer of this store, which does not own the thread, was not dropped.
    pub fn is_written(&self, thread: ThreadId) -> bool {
        self.active.lock().values().any(|written| *written == thread)
    }

    /// A lease for a change that nobody has prepared: under the ownership, if this process owns the thread.
    pub async fn take_for_change(self: &Arc<Self>, thread: ThreadId) -> Result<HeldLease> {
        match self.ownerships.live(thread) {
            Some(ownership) => self.take_owned(thread, ownership).await,
            None => self.take(thread, Uuid::now_v7()).await,
        }
    }

    /// A lease under an ownership. Fails with [`Error::Held`] while the ownership has another writer.
    pub async fn take_owned(self: &Arc<Self>, thread: ThreadId, ownership: Arc<Ownership>) -> Result<HeldLease> {
        let (session, epoch) = (ownership.session, ownership.epoch);
        let slot = ownership.writer_slot(thread)?;
        let made = self.database.retry(|| self.new_token(thread, slot.ownership())).await?;
        Ok(HeldLease {
            leases: Arc::clone(self),
            runtime: Handle::current(),
            thread,
            session,
            token: made.token,
            epoch: u64::try_from(epoch).unwrap_or_default(),
            owned: Some((slot, made)),
        })
    }

    /// Makes a token under an ownership. May be repeated: only the last token counts.
    async fn new_token(&self, thread: ThreadId, ownership: &Ownership) -> Result<NewToken> {
        ownership.check(thread)?;
        let client = self.database.client().await?;
        let failed = |error: tokio_postgres::Error| self.database.place.query(&error);
        let statement = client.prepare_cached(NEW_TOKEN).await.map_err(failed)?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [thread.as_uuid(), &ownership.session, &ownership.epoch];
        let row = client.query_one(&statement, &params).await.map_err(failed)?;
        let Some(token) = row.get(0) else {
            self.ownerships.lost(thread, ownership);
            return Err(Error::StaleLease { id: thread });
        };
        Ok(NewToken { token, end: row.get(1), has_head: row.get::<_, Option<bool>>(2).unwrap_or_default() })
    }

    /// Takes a thread's lease for a reader. Runs to its end when its caller gives up, and then gives the lease back.
    pub async fn take(self: &Arc<Self>, thread: ThreadId, reader: Uuid) -> Result<HeldLease> {
        let leases = Arc::clone(self);
        let taken = tokio::spawn(async move {
            let mut repeats = false;
            let again = || leases.take_or_wait(thread, reader, std::mem::replace(&mut repeats, true));
            leases.database.retry(again).await
        });
        let taken = taken.await;
        taken.map_err(|_| Error::Stopped)?
    }

    /// May be repeated while the database is away: nobody writes under the token of a lost try.
    async fn take_or_wait(self: &Arc<Self>, thread: ThreadId, reader: Uuid, repeats: bool) -> Result<HeldLease> {
        let deadline = Instant::now() + self.handover;
        let mut pause = FIRST_PAUSE;
        loop {
            let session = self.sessions.get(&self.database).await?;
            let client = self.database.client().await?;
            let failed = |error: tokio_postgres::Error| self.database.place.query(&error);
            let take = client.prepare_cached(TAKE).await.map_err(failed)?;
            let repeats = repeats && !self.is_written(thread);
            let row = client.query_opt(&take, &[thread.as_uuid(), &session, &reader, &repeats]).await;
            if let Some(row) = row.map_err(failed)? {
                let (token, epoch): (i64, i64) = (row.get(0), row.get(1));
                self.active.lock().insert(token, thread);
                let (epoch, runtime) = (u64::try_from(epoch).unwrap_or_default(), Handle::current());
                return Ok(HeldLease { leases: Arc::clone(self), runtime, thread, session, token, epoch, owned: None });
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
                if self.active.lock().contains_key(&token) {
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

/// What is known with a new token of an owned thread.
#[derive(Clone, Copy)]
pub(crate) struct NewToken {
    pub token: i64,
    /// The number of the thread's next record; `None` when the thread is not stored.
    pub end: Option<i64>,
    /// Whether the thread's row has all that the head of its records gives.
    pub has_head: bool,
}

/// A lease that was taken. Given back when it is dropped, on the runtime that took it, unless the thread is owned.
pub(crate) struct HeldLease {
    leases: Arc<Leases>,
    runtime: Handle,
    pub thread: ThreadId,
    pub session: Uuid,
    pub token: i64,
    pub epoch: u64,
    /// Set when the thread is owned: the right to write, and what came with the token.
    pub owned: Option<(WriterSlot, NewToken)>,
}

impl HeldLease {
    /// Fails when the ownership under which the lease was taken has ended here.
    pub fn check_ownership(&self) -> Result<()> {
        match &self.owned {
            Some((slot, _)) => slot.ownership().check(self.thread),
            None => Ok(()),
        }
    }

    /// Makes another token under the ownership, so that nothing sent under the last one can come true any more.
    pub async fn replace_token(&mut self) -> Result<NewToken> {
        let Some((slot, made)) = &mut self.owned else { return Err(Error::StaleLease { id: self.thread }) };
        *made = self.leases.new_token(self.thread, slot.ownership()).await?;
        self.token = made.token;
        Ok(*made)
    }

    /// Fails when another holder has taken the thread over. Under an ownership, the token does not matter: the writer can
    /// make another one.
    pub async fn check(&self) -> Result<()> {
        self.check_ownership()?;
        self.leases.database.retry(|| self.check_row()).await
    }

    async fn check_row(&self) -> Result<()> {
        let database = &self.leases.database;
        let client = database.client().await?;
        let query = "SELECT 1 FROM loomd.lease WHERE thread_id = $1 AND session = $2 AND epoch = $3 \
                     AND (token = $4 OR $5)";
        let epoch = i64::try_from(self.epoch).unwrap_or(i64::MAX);
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [self.thread.as_uuid(), &self.session, &epoch, &self.token, &self.owned.is_some()];
        let row = client.query_opt(query, &params).await;
        match row.map_err(|error| database.place.query(&error))? {
            Some(_) => Ok(()),
            None => Err(Error::StaleLease { id: self.thread }),
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if self.owned.is_some() {
            return;
        }
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

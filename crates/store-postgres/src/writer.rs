//! Appending to a thread under its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Object;
use loomd_store::rollout::whole_lines;
use loomd_store::{Answer, Appended, Batch, Durability, Error, Failure, Lease, Position, Result, Writer, read_head};

use crate::append::{APPEND, Lines};
use crate::error::is_lost;
use crate::facts::HeadColumns;
use crate::lease::HeldLease;
use crate::retry::Patience;
use crate::store::Inner;

/// The session metadata and the first message are looked for in so many records, at least.
const HEAD_RECORDS: i64 = 256;

/// How often an append is tried with another token.
const REFUSALS: usize = 3;

/// What the readers and writers of one opening of a thread know of it.
#[derive(Default)]
pub(crate) struct Known {
    /// Whether the thread is new, and nothing has been appended to it.
    pub is_new: AtomicBool,
    /// Whether the row of the thread has everything that the head of its records gives.
    head: AtomicBool,
}

/// A writer of one thread.
pub(crate) struct PostgresWriter {
    inner: Arc<Inner>,
    known: Arc<Known>,
    lease: HeldLease,
    /// Set while it is unknown whether the last append was done: it was given up, or the connection was lost. It may
    /// still come to the database, so nothing more is written under this token.
    unknown: bool,
    /// The number of the thread's next record. Known of an owned thread only, which nobody else appends to.
    end: i64,
}

impl Lease for PostgresWriter {
    fn epoch(&self) -> u64 {
        self.lease.epoch
    }

    fn renew(&self) -> Answer<'_, ()> {
        Box::pin(self.lease.check())
    }
}

impl Writer for PostgresWriter {
    /// A commit is on the disk when it is acknowledged, whatever `durability` demands, as far as the server is
    /// configured so.
    ///
    /// To an owned thread, the batch is appended once also when the database restarts meanwhile. Of another thread, an
    /// append whose outcome is unknown ends the writer.
    fn append(&mut self, batch: Batch, _: Durability) -> Answer<'_, Appended> {
        Box::pin(async move {
            if self.lease.owned.is_some() {
                return self.append_owned(&batch).await;
            }
            if self.unknown {
                return Err(Error::StaleLease { id: self.lease.thread });
            }
            let client = self.inner.database.waiting_client().await?;
            if let Some(appended) = self.append_once(client, &batch).await? {
                return Ok(appended);
            }
            self.lease.check().await?;
            Err(Error::NotFound { id: self.lease.thread })
        })
    }
}

impl PostgresWriter {
    pub fn new(inner: Arc<Inner>, known: Arc<Known>, lease: HeldLease) -> Self {
        let mut end = 0;
        if let Some((_, made)) = &lease.owned {
            known.head.fetch_or(made.has_head, Ordering::Relaxed);
            end = made.end.unwrap_or_default();
        }
        Self { inner, known, lease, unknown: false, end }
    }

    /// Appends a batch, and tries again while the database is away.
    async fn append_owned(&mut self, batch: &Batch) -> Result<Appended> {
        let mut patience = Patience::new(self.inner.database.patience);
        let (mut start, mut refused) = (None, 0);
        loop {
            let tried = tokio::time::timeout_at(patience.deadline, self.try_owned(batch, &mut start)).await;
            let tried = tried.unwrap_or_else(|_| {
                Err(self.inner.database.place.error(Failure::Unreachable, "the server does not answer"))
            });
            match tried {
                Ok(Some(appended)) => return Ok(appended),
                // The token may be older than one that was made by a request which was lost and came late. With another
                // one, the batch is appended, or it shows that the thread is no longer owned, or gone.
                Ok(None) if refused < REFUSALS => refused += 1,
                Ok(None) => return Err(Error::StaleLease { id: self.lease.thread }),
                Err(error) if patience.goes_on(&error).await => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One try; `None` when the database refused it, and nothing was done. `start` is where the tries before it would have put the batch. A new token makes sure that none of them
    /// can come true any more; the end of the thread then tells whether one did, because no one else appends under this
    /// ownership.
    async fn try_owned(&mut self, batch: &Batch, start: &mut Option<i64>) -> Result<Option<Appended>> {
        self.lease.check_ownership()?;
        if self.unknown {
            let end = self.lease.replace_token().await?.end;
            self.unknown = false;
            if end.is_none() && !self.known.is_new.load(Ordering::Relaxed) {
                return Err(Error::NotFound { id: self.lease.thread });
            }
            self.end = end.unwrap_or_default();
            let count = i64::try_from(whole_lines(batch.bytes()).count()).unwrap_or(i64::MAX);
            if let Some(start) = *start
                && self.end > start
            {
                if self.end - start != count {
                    let reason = format!("record {start} is followed by others than were appended");
                    return Err(self.inner.database.place.corrupt("thread", reason));
                }
                self.known.is_new.store(false, Ordering::Relaxed);
                self.inner.wake.changed(self.lease.thread);
                return Ok(Some(Appended { start: position(start), end: position(self.end) }));
            }
        }
        *start = Some(self.end);
        let client = self.inner.database.client().await?;
        let appended = self.append_once(client, batch).await?;
        self.unknown = appended.is_none();
        Ok(appended)
    }

    /// Sends the batch; `None` when the lease is another's, or the thread is gone. `unknown` stays set when the outcome is
    /// unknown.
    async fn append_once(&mut self, client: Object, batch: &Batch) -> Result<Option<Appended>> {
        let is_new = self.known.is_new.load(Ordering::Relaxed);
        let (head, complete) = self.head(&client, batch, is_new).await?;
        let lines = Lines::of(batch);
        let failed = |error: tokio_postgres::Error| self.inner.database.place.query(&error);
        let statement = client.prepare_cached(&APPEND).await.map_err(failed)?;
        let (thread, count) = (self.lease.thread, lines.count());
        let epoch = i64::try_from(self.lease.epoch).unwrap_or(i64::MAX);
        // A connection whose statement was given up is not used again: the next one would wait behind it.
        let client = OneUse(Some(client));
        self.unknown = true;
        let row = client
            .query_opt(
                &statement,
                &[
                    thread.as_uuid(),
                    &self.lease.session,
                    &self.lease.token,
                    &count,
                    &epoch,
                    &lines.kinds,
                    &lines.sizes,
                    &lines.bodies,
                    &lines.digests,
                    &lines.blob_digests,
                    &lines.blobs,
                    &is_new,
                    &head.meta,
                    &head.preview,
                    &head.created_ns,
                    &head.kind,
                    &head.provider,
                    &head.cwd,
                    &head.originator,
                    &head.parent,
                    &head.attached_to,
                ],
            )
            .await;
        // Any other error of the server means that nothing was done.
        self.unknown = row.as_ref().is_err_and(|error| error.as_db_error().is_none() || is_lost(error));
        if !self.unknown {
            client.give_back();
        }
        let Some(row) = row.map_err(|error| self.inner.database.place.query(&error))? else { return Ok(None) };
        self.known.is_new.store(false, Ordering::Relaxed);
        self.known.head.store(complete, Ordering::Relaxed);
        self.inner.wake.changed(thread);
        self.end = row.get(0);
        Ok(Some(Appended { start: position(self.end - count), end: position(self.end) }))
    }
}

/// A connection that leaves the pool unless it is given back.
struct OneUse(Option<Object>);

impl OneUse {
    fn give_back(mut self) {
        self.0.take();
    }

    async fn query_opt(
        &self,
        statement: &tokio_postgres::Statement,
        params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Option<tokio_postgres::Row>, tokio_postgres::Error> {
        match &self.0 {
            Some(client) => client.query_opt(statement, params).await,
            None => Ok(None),
        }
    }
}

impl Drop for OneUse {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

impl PostgresWriter {
    /// What the batch adds to the thread's row, and whether nothing is left to be added after it.
    async fn head(&self, client: &Object, batch: &Batch, is_new: bool) -> Result<(HeadColumns, bool)> {
        if self.known.head.load(Ordering::Relaxed) {
            return Ok((HeadColumns::default(), true));
        }
        let mut first = Vec::new();
        let mut records = i64::try_from(batch.lines()).unwrap_or(i64::MAX);
        if !is_new {
            let failed = |error: tokio_postgres::Error| self.inner.database.place.query(&error);
            let query = "SELECT end_seq, meta IS NOT NULL AND preview IS NOT NULL FROM loomd.thread WHERE id = $1";
            let Some(row) = client.query_opt(query, &[self.lease.thread.as_uuid()]).await.map_err(failed)? else {
                return Ok((HeadColumns::default(), false));
            };
            let (end, complete): (i64, bool) = (row.get(0), row.get(1));
            if complete || end > HEAD_RECORDS {
                return Ok((HeadColumns::default(), true));
            }
            let query = "SELECT coalesce(e.body, b.bytes) FROM loomd.event e \
                         LEFT JOIN loomd.blob b ON b.thread_id = e.thread_id AND b.digest = e.digest \
                         WHERE e.thread_id = $1 ORDER BY e.seq";
            for row in client.query(query, &[self.lease.thread.as_uuid()]).await.map_err(failed)? {
                first.extend_from_slice(row.get::<_, Option<&[u8]>>(0).unwrap_or_default());
                first.push(b'\n');
            }
            records += end;
        }
        for (_, line) in whole_lines(batch.bytes()).take(HEAD_RECORDS as usize) {
            first.extend_from_slice(line);
            first.push(b'\n');
        }
        let head = read_head(&*first).map_err(|error| self.inner.database.place.corrupt("records", error))?;
        let complete = (head.meta.is_some() && head.preview.is_some()) || records > HEAD_RECORDS;
        Ok((HeadColumns::of(head)?, complete))
    }
}

/// The position before the record with a number.
pub(crate) fn position(seq: i64) -> Position {
    Position::from_bits(u64::try_from(seq).unwrap_or_default())
}

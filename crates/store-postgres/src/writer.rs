//! Appending to a thread under its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Object;
use loomd_store::rollout::whole_lines;
use loomd_store::{Answer, Appended, Batch, Durability, Error, Lease, Position, Result, Writer, read_head};

use crate::append::{APPEND, Lines};
use crate::facts::HeadColumns;
use crate::lease::HeldLease;
use crate::store::Inner;

/// The session metadata and the first message are looked for in so many records, at least.
const HEAD_RECORDS: i64 = 256;

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
    pub inner: Arc<Inner>,
    pub known: Arc<Known>,
    pub lease: HeldLease,
    /// Set while it is unknown whether the last append was done: it was given up, or the connection was lost. It may
    /// still come to the database, so nothing more is written under this token.
    pub unknown: bool,
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
    fn append(&mut self, batch: Batch, _: Durability) -> Answer<'_, Appended> {
        Box::pin(async move {
            if self.unknown {
                return Err(Error::StaleLease { id: self.lease.thread });
            }
            let client = self.inner.database.client().await?;
            let is_new = self.known.is_new.load(Ordering::Relaxed);
            let (head, complete) = self.head(&client, &batch, is_new).await?;
            let lines = Lines::of(&batch);
            let failed = |error: tokio_postgres::Error| self.inner.database.place.query(&error);
            let statement = client.prepare_cached(&APPEND).await.map_err(failed)?;
            let (thread, count) = (self.lease.thread, lines.count());
            let epoch = i64::try_from(self.lease.epoch).unwrap_or(i64::MAX);
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
            // An error of the server itself means that nothing was done.
            self.unknown = row.as_ref().is_err_and(|error| error.as_db_error().is_none());
            let row = row.map_err(|error| self.inner.database.place.query(&error))?;
            drop(client);
            let Some(row) = row else {
                self.lease.check().await?;
                return Err(Error::NotFound { id: thread });
            };
            self.known.is_new.store(false, Ordering::Relaxed);
            self.known.head.store(complete, Ordering::Relaxed);
            self.inner.wake.changed(thread);
            let end: i64 = row.get(0);
            Ok(Appended { start: position(end - count), end: position(end) })
        })
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

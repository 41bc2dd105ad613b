//! Reading the records of a thread.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use loomd_store::{Answer, Error, Position, Reader, Result, ThreadId, Window, Writer};
use uuid::Uuid;

use crate::ownership::Ownership;
use crate::store::Inner;
use crate::writer::{Known, PostgresWriter, position};

/// Records of one query.
const CHUNK: i64 = 1000;

/// Records from one on, until they fill a number of bytes; at least one.
const AFTER: &str = "
    SELECT e.seq, e.size, coalesce(e.body, b.bytes) FROM (
        SELECT *, sum(size + 1) OVER (ORDER BY seq) AS total FROM (
            SELECT * FROM loomd.event WHERE thread_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq LIMIT $5
        ) chunk
    ) e LEFT JOIN loomd.blob b ON b.thread_id = e.thread_id AND b.digest = e.digest
    WHERE e.total <= $4 OR (e.seq = $2 AND $6) ORDER BY e.seq";

/// The same before a record, the last one first.
const BEFORE: &str = "
    SELECT e.seq, e.size, coalesce(e.body, b.bytes) FROM (
        SELECT *, sum(size + 1) OVER (ORDER BY seq DESC) AS total FROM (
            SELECT * FROM loomd.event WHERE thread_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq DESC LIMIT $5
        ) chunk
    ) e LEFT JOIN loomd.blob b ON b.thread_id = e.thread_id AND b.digest = e.digest
    WHERE e.total <= $4 OR (e.seq = $3 - 1 AND $6) ORDER BY e.seq DESC";

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

pub(crate) struct PostgresReader {
    inner: Arc<Inner>,
    thread: ThreadId,
    /// Tells the epochs of readers apart.
    id: Uuid,
    known: Arc<Known>,
    /// The ownership under which this reader writes. When it has ended, the reader writes nothing more.
    bound: OnceLock<Arc<Ownership>>,
}

impl PostgresReader {
    pub fn new(inner: Arc<Inner>, thread: ThreadId, is_new: bool) -> Self {
        let known = Known::default();
        known.is_new.store(is_new, Ordering::Relaxed);
        let bound = inner.ownerships.live(thread).map_or_else(OnceLock::new, OnceLock::from);
        Self { inner, thread, id: Uuid::now_v7(), known: Arc::new(known), bound }
    }

    /// The ownership to write under; `None` when the thread is not owned here.
    fn ownership(&self) -> Result<Option<Arc<Ownership>>> {
        let stale = || Error::StaleLease { id: self.thread };
        if self.bound.get().is_some_and(|bound| bound.is_ended()) {
            return Err(stale());
        }
        match self.inner.ownerships.get(self.thread) {
            Some(ownership) if ownership.is_ended() => Err(stale()),
            Some(ownership) => {
                self.bound.get_or_init(|| Arc::clone(&ownership));
                Ok(Some(ownership))
            }
            None if self.bound.get().is_some() => Err(stale()),
            None => Ok(None),
        }
    }

    async fn end_seq(&self) -> Result<i64> {
        let client = self.inner.database.client().await?;
        let failed = |error: tokio_postgres::Error| self.inner.database.place.query(&error);
        let query = client.prepare_cached("SELECT end_seq FROM loomd.thread WHERE id = $1").await.map_err(failed)?;
        match client.query_opt(&query, &[self.thread.as_uuid()]).await.map_err(failed)? {
            Some(row) => Ok(row.get(0)),
            None if self.known.is_new.load(Ordering::Relaxed) => Ok(0),
            None => Err(Error::NotFound { id: self.thread }),
        }
    }

    /// The records of a range that fit into a number of bytes, from its start or from its end.
    async fn records(&self, way: Way, from: i64, to: i64, limit: usize) -> Result<Vec<Vec<u8>>> {
        let client = self.inner.database.client().await?;
        let failed = |error: tokio_postgres::Error| self.inner.database.place.query(&error);
        let query = client.prepare_cached(if way == Way::Forward { AFTER } else { BEFORE }).await.map_err(failed)?;
        let (mut from, mut to, mut left) = (from, to, i64::try_from(limit).unwrap_or(i64::MAX));
        let mut records: Vec<Vec<u8>> = Vec::new();
        while from < to {
            let first = records.is_empty();
            let rows = client.query(&query, &[self.thread.as_uuid(), &from, &to, &left, &CHUNK, &first]).await;
            let rows = rows.map_err(failed)?;
            for row in &rows {
                let (seq, size): (i64, i32) = (row.get(0), row.get(1));
                let Some(body) = row.get::<_, Option<Vec<u8>>>(2) else {
                    return Err(self.inner.database.place.corrupt("record", format!("record {seq} has no blob")));
                };
                left = left.saturating_sub(i64::from(size) + 1);
                match way {
                    Way::Forward => from = seq + 1,
                    Way::Backward => to = seq,
                }
                records.push(body);
            }
            if i64::try_from(rows.len()).unwrap_or(0) < CHUNK || left <= 0 {
                break;
            }
        }
        Ok(records)
    }
}

impl Reader for PostgresReader {
    fn id(&self) -> ThreadId {
        self.thread
    }

    fn end(&self) -> Answer<'_, Position> {
        Box::pin(async move { self.inner.database.retry(|| self.end_seq()).await.map(position) })
    }

    fn records_after(&self, position: Position, limit: usize) -> Answer<'_, Window> {
        Box::pin(self.inner.database.retry_long(move || async move {
            // The end comes first: what is appended meanwhile is beyond the window.
            let end = self.end_seq().await?;
            let start = seq(position).min(end);
            let records = self.records(Way::Forward, start, end, limit).await?;
            Ok(window(start, end, &records))
        }))
    }

    fn records_before(&self, position: Option<Position>, limit: usize) -> Answer<'_, Window> {
        Box::pin(self.inner.database.retry_long(move || async move {
            let end = self.end_seq().await?;
            let to = position.map_or(end, seq).min(end);
            let mut records = self.records(Way::Backward, 0, to, limit).await?;
            records.reverse();
            Ok(window(to - i64::try_from(records.len()).unwrap_or(0), end, &records))
        }))
    }

    fn writer(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async move {
            let lease = match self.ownership()? {
                Some(ownership) => self.inner.leases.take_owned(self.thread, ownership).await?,
                None => self.inner.leases.take(self.thread, self.id).await?,
            };
            let (inner, known) = (Arc::clone(&self.inner), Arc::clone(&self.known));
            Ok(Box::new(PostgresWriter::new(inner, known, lease)) as Box<dyn Writer>)
        })
    }
}

fn window(start: i64, end: i64, records: &[Vec<u8>]) -> Window {
    let number = |seq| u64::try_from(seq).unwrap_or_default();
    Window::of_records(number(start), number(end), records.iter().map(Vec::as_slice))
}

fn seq(position: Position) -> i64 {
    i64::try_from(position.to_bits()).unwrap_or(i64::MAX)
}

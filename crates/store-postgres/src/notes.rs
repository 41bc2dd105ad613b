//! Notes about unfinished turns: one row for each thread. Notes of an owned thread are written only while the session
//! and the epoch are the row's of the lease.
//!
//! Every change has a number, and one that comes after a later one does nothing. So a change may be repeated when its
//! outcome is unknown, and the first try of it may still arrive. For the same reason a row is emptied, not removed.

use std::sync::Arc;

use loomd_store::{Answer, Error, Failure, Result, ThreadId, TurnNotes};
use uuid::Uuid;

use crate::ownership::Ownership;
use crate::store::Inner;

/// Whether the lease is held with a session and an epoch, until the statement is over.
const HELD: &str = "held AS MATERIALIZED (
    SELECT 1 FROM loomd.lease WHERE thread_id = $1 AND session = $3 AND epoch = $4 FOR SHARE)";

/// Whether no other session than one holds the lease.
const FREE: &str = "held AS MATERIALIZED (
    SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM loomd.lease l WHERE l.thread_id = $1 AND l.session <> $3
        AND loomd.is_live(l.session)))";

const LATER: &str = "(n.epoch, n.version) < (excluded.epoch, excluded.version)";

#[derive(Clone, Copy)]
enum Change {
    Replace,
    Add,
}

/// The statement of a change by the owner. Parameters: thread, lines, session, epoch, number. Its row says whether the
/// thread is held, and whether it had notes.
fn owned(change: Change) -> String {
    let change = match change {
        Change::Replace => format!(
            "INSERT INTO loomd.turn_note AS n (thread_id, lines, epoch, version) SELECT $1::uuid, $2::bytea, $4::bigint, $5::bigint FROM held
             ON CONFLICT (thread_id) DO UPDATE SET
                lines = excluded.lines, epoch = excluded.epoch, version = excluded.version WHERE {LATER}"
        ),
        Change::Add => "UPDATE loomd.turn_note SET lines = lines || $2::bytea, epoch = $4, version = $5
             WHERE thread_id = $1 AND octet_length(lines) > 0 AND (epoch, version) < ($4::bigint, $5::bigint)
             AND EXISTS (SELECT 1 FROM held)"
            .into(),
    };
    statement(HELD, &change)
}

/// The statement of a change of a thread that this process does not own. Parameters: thread, lines, session.
fn unowned(change: Change) -> String {
    let change = match change {
        Change::Replace => "INSERT INTO loomd.turn_note AS n (thread_id, lines, epoch, version) SELECT $1::uuid, $2::bytea, 0, 0 FROM held
             ON CONFLICT (thread_id) DO UPDATE SET lines = excluded.lines, version = n.version + 1",
        Change::Add => "UPDATE loomd.turn_note SET lines = lines || $2::bytea, version = version + 1
             WHERE thread_id = $1 AND octet_length(lines) > 0 AND EXISTS (SELECT 1 FROM held)",
    };
    statement(FREE, change)
}

fn statement(held: &str, change: &str) -> String {
    format!(
        "WITH {held}, changed AS ({change})
         SELECT EXISTS (SELECT 1 FROM held),
            EXISTS (SELECT 1 FROM loomd.turn_note WHERE thread_id = $1 AND octet_length(lines) > 0)"
    )
}

pub(crate) struct PostgresNotes(pub(crate) Arc<Inner>);

impl PostgresNotes {
    /// Makes a change; whether the thread had notes before.
    async fn change(&self, id: ThreadId, change: Change, lines: &[u8]) -> Result<bool> {
        let inner = &self.0;
        let ownership = match inner.ownerships.get(id) {
            Some(ownership) => ownership,
            None if inner.sessions.is_node() => return Err(Error::StaleLease { id }),
            None => return self.change_unowned(id, change, lines).await,
        };
        ownership.check(id)?;
        let mut last = ownership.notes.lock().await;
        *last += 1;
        let number = *last;
        inner.database.retry(|| self.change_owned(id, change, lines, &ownership, number)).await
    }

    async fn change_owned(
        &self,
        id: ThreadId,
        change: Change,
        lines: &[u8],
        owner: &Ownership,
        number: i64,
    ) -> Result<bool> {
        owner.check(id)?;
        let database = &self.0.database;
        let client = database.client().await?;
        let failed = |error: tokio_postgres::Error| database.place.query(&error);
        let statement = client.prepare_cached(&owned(change)).await.map_err(failed)?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [id.as_uuid(), &lines, &owner.session, &owner.epoch, &number];
        let row = client.query_one(&statement, &params).await.map_err(failed)?;
        if !row.get::<_, bool>(0) {
            self.0.ownerships.lost(id, owner);
            return Err(Error::StaleLease { id });
        }
        Ok(row.get(1))
    }

    /// Not repeated when the connection is lost: nothing tells a second try from a second note.
    async fn change_unowned(&self, id: ThreadId, change: Change, lines: &[u8]) -> Result<bool> {
        let database = &self.0.database;
        let session = self.0.sessions.current().await.unwrap_or(Uuid::nil());
        let client = database.waiting_client().await?;
        let failed = |error: tokio_postgres::Error| database.place.query(&error);
        let row = client.query_one(&unowned(change), &[id.as_uuid(), &lines, &session]).await.map_err(failed)?;
        if row.get::<_, bool>(0) { Ok(row.get(1)) } else { Err(Error::StaleLease { id }) }
    }

    async fn lines(&self, id: ThreadId) -> Result<Vec<u8>> {
        let database = &self.0.database;
        let client = database.client().await?;
        let read = "SELECT lines FROM loomd.turn_note WHERE thread_id = $1";
        let row = client.query_opt(read, &[id.as_uuid()]).await.map_err(|error| database.place.query(&error))?;
        Ok(row.map(|row| row.get(0)).unwrap_or_default())
    }

    async fn noted(&self) -> Result<Vec<ThreadId>> {
        let database = &self.0.database;
        let client = database.client().await?;
        let all = "SELECT thread_id FROM loomd.turn_note WHERE octet_length(lines) > 0 ORDER BY thread_id";
        let rows = client.query(all, &[]).await.map_err(|error| database.place.query(&error))?;
        Ok(rows.iter().map(|row| row.get::<_, Uuid>(0).into()).collect())
    }
}

impl TurnNotes for PostgresNotes {
    fn replace(&self, id: ThreadId, lines: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(async move { self.change(id, Change::Replace, &lines).await.map(drop) })
    }

    fn add(&self, id: ThreadId, line: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.change(id, Change::Add, &line).await? {
                true => Ok(()),
                false => Err(self.0.database.place.error(Failure::Missing, format!("thread {id} has no notes"))),
            }
        })
    }

    fn read(&self, id: ThreadId) -> Answer<'_, Vec<u8>> {
        Box::pin(self.0.database.retry(move || self.lines(id)))
    }

    fn remove(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(async move { self.change(id, Change::Replace, b"").await.map(drop) })
    }

    fn threads(&self) -> Answer<'_, Vec<ThreadId>> {
        Box::pin(self.0.database.retry(move || self.noted()))
    }
}

//! Requests that must not be carried out twice, in the database: the digests of their keys and bodies, and their answers.

use loomd_store::{EarlierRequest, RequestKey, Result, ThreadId};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::text::storable;
use crate::work::PostgresWork;

/// The answer to a request, unless it belongs to no thread and is older than a day.
const FIND: &str = "SELECT body, answer, epoch, claim FROM loomd.answered WHERE thread_id = $1 AND method = $2 AND key = $3 \
    AND (thread_id <> '00000000-0000-0000-0000-000000000000' OR at > clock_timestamp() - interval '1 day')";

/// Epochs are decimal numbers. The answer of a later owner of the thread stays.
const WRITE: &str = "INSERT INTO loomd.answered AS a (thread_id, method, key, body, answer, epoch, at) \
    VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp()) ON CONFLICT (thread_id, method, key) DO UPDATE SET \
    body = excluded.body, answer = excluded.answer, epoch = excluded.epoch, at = excluded.at, claim = NULL \
    WHERE excluded.epoch = '' OR (length(a.epoch), a.epoch) <= (length(excluded.epoch), excluded.epoch)";

/// Notes an answer where there is none.
const CLAIM: &str = "INSERT INTO loomd.answered (thread_id, method, key, body, answer, epoch, at, claim) \
    VALUES ($1, $2, $3, $4, $5, '', clock_timestamp(), $6) ON CONFLICT (thread_id, method, key) DO NOTHING";

const EXPIRE: &str = "DELETE FROM loomd.answered WHERE thread_id = '00000000-0000-0000-0000-000000000000' \
    AND at <= clock_timestamp() - interval '1 day'";

/// The nil id for requests that belong to no thread.
fn scope(id: Option<ThreadId>) -> Uuid {
    id.map_or(Uuid::nil(), |id| *id.as_uuid())
}

/// A key may be longer than an index takes.
fn key(request: &RequestKey) -> Vec<u8> {
    Sha256::digest(&request.key).to_vec()
}

fn earlier(row: &tokio_postgres::Row, request: &RequestKey) -> EarlierRequest {
    match row.get::<_, &[u8]>(0) == request.body {
        true => EarlierRequest::Same { answer: row.get(1), epoch: row.get(2) },
        false => EarlierRequest::Different,
    }
}

impl PostgresWork {
    pub(crate) async fn find_answer(
        &self,
        id: Option<ThreadId>,
        request: &RequestKey,
    ) -> Result<Option<EarlierRequest>> {
        let client = self.0.client().await?;
        let row = client.query_opt(FIND, &[&scope(id), &request.method, &key(request)]).await;
        Ok(row.map_err(|error| self.failed(error))?.map(|row| earlier(&row, request)))
    }

    pub(crate) async fn write_answer(
        &self,
        id: Option<ThreadId>,
        request: &RequestKey,
        answer: &str,
        epoch: &str,
    ) -> Result<()> {
        let client = self.0.client().await?;
        let (scope, key, answer, epoch) = (scope(id), key(request), storable(answer), storable(epoch));
        let written = client
            .execute(WRITE, &[&scope, &request.method, &key, &request.body, &answer.as_ref(), &epoch.as_ref()])
            .await;
        written.map(drop).map_err(|error| self.failed(error))
    }

    /// The earlier request; `None` when this one was noted, now or in an earlier try with the same `claim`.
    pub(crate) async fn insert_answer(
        &self,
        id: Option<ThreadId>,
        request: &RequestKey,
        answer: &str,
        claim: Uuid,
    ) -> Result<Option<EarlierRequest>> {
        let mut client = self.0.client().await?;
        let transaction = client.transaction().await.map_err(|error| self.failed(error))?;
        if id.is_none() {
            transaction.execute(EXPIRE, &[]).await.map_err(|error| self.failed(error))?;
        }
        let (scope, key, answer) = (scope(id), key(request), storable(answer));
        let inserted =
            transaction.execute(CLAIM, &[&scope, &request.method, &key, &request.body, &answer.as_ref(), &claim]).await;
        let inserted = inserted.map_err(|error| self.failed(error))?;
        let found = match inserted {
            0 => transaction.query_opt(FIND, &[&scope, &request.method, &key]).await,
            _ => Ok(None),
        };
        let found = found.map_err(|error| self.failed(error))?;
        self.commit(transaction).await?;
        let others = found.filter(|row| row.get::<_, Option<Uuid>>(3) != Some(claim));
        Ok(others.map(|row| earlier(&row, request)))
    }

    /// May be repeated: it removes one row.
    pub(crate) async fn remove_answer(&self, id: Option<ThreadId>, request: &RequestKey) -> Result<()> {
        let client = self.0.client().await?;
        let remove = "DELETE FROM loomd.answered WHERE thread_id = $1 AND method = $2 AND key = $3";
        let removed = client.execute(remove, &[&scope(id), &request.method, &key(request)]).await;
        removed.map(drop).map_err(|error| self.failed(error))
    }
}

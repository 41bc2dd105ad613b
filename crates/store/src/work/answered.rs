//! Requests that must not be carried out twice: their keys, a digest of their bodies, and their answers.

use rusqlite::{Connection, OptionalExtension, params};

use super::WorkStore;
use crate::ThreadId;
use crate::error::Result;

/// The keys of requests that belong to no thread are forgotten after this time.
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

/// A request that must not be carried out twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    pub method: &'static str,
    /// The client's.
    pub key: String,
    /// A digest of the request's params.
    pub body: Vec<u8>,
}

/// An earlier request with the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierRequest {
    /// It had the same body, and this is what was noted about it.
    Same { answer: String, epoch: String },
    /// It had another body.
    Different,
}

impl WorkStore {
    /// The earlier request of a thread, or of none, with the same method and key.
    pub async fn earlier_request(&self, id: Option<ThreadId>, request: RequestKey) -> Result<Option<EarlierRequest>> {
        if let Some(shared) = self.as_shared() {
            return shared.earlier_request(id, request).await;
        }
        self.read(None, move |connection| earlier(connection, &scope(id), &request)).await
    }

    /// Notes the answer to a request, in place of an earlier one. `epoch` is returned with it.
    pub async fn note_answer(
        &self,
        id: Option<ThreadId>,
        request: RequestKey,
        answer: String,
        epoch: String,
    ) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.note_answer(id, request, answer, epoch).await;
        }
        self.change(move |transaction| write(transaction, &scope(id), &request, &answer, &epoch)).await
    }

    /// The earlier request with the same method and key; if there is none, notes the answer, in the same transaction.
    pub async fn claim_answer(
        &self,
        id: Option<ThreadId>,
        request: RequestKey,
        answer: String,
    ) -> Result<Option<EarlierRequest>> {
        if let Some(shared) = self.as_shared() {
            return shared.claim_answer(id, request, answer).await;
        }
        self.change(move |transaction| {
            let earlier = earlier(transaction, &scope(id), &request)?;
            if earlier.is_none() {
                transaction
                    .execute("DELETE FROM answered WHERE thread_id = '' AND at_ms <= ?1", [now_ms() - LIFETIME_MS])?;
                write(transaction, &scope(id), &request, &answer, "")?;
            }
            Ok(earlier)
        })
        .await
    }

    /// Forgets a request that was not carried out after all.
    pub async fn forget_answer(&self, id: Option<ThreadId>, request: RequestKey) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.forget_answer(id, request).await;
        }
        self.read((), move |connection| {
            connection.execute(
                "DELETE FROM answered WHERE thread_id = ?1 AND method = ?2 AND key = ?3",
                params![scope(id), request.method, request.key],
            )?;
            Ok(())
        })
        .await
    }
}

/// Empty for requests that belong to no thread.
fn scope(id: Option<ThreadId>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

fn earlier(connection: &Connection, scope: &str, request: &RequestKey) -> rusqlite::Result<Option<EarlierRequest>> {
    let mut query = connection.prepare_cached(
        "SELECT body, answer, epoch FROM answered \
         WHERE thread_id = ?1 AND method = ?2 AND key = ?3 AND (thread_id <> '' OR at_ms > ?4)",
    )?;
    let oldest = now_ms() - LIFETIME_MS;
    query
        .query_row(params![scope, request.method, request.key, oldest], |row| {
            Ok(match row.get::<_, Vec<u8>>(0)? == request.body {
                true => EarlierRequest::Same { answer: row.get(1)?, epoch: row.get(2)? },
                false => EarlierRequest::Different,
            })
        })
        .optional()
}

fn write(
    connection: &Connection,
    scope: &str,
    request: &RequestKey,
    answer: &str,
    epoch: &str,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO answered (thread_id, method, key, body, answer, epoch, at_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(params![scope, request.method, request.key, request.body, answer, epoch, now_ms()])?;
    Ok(())
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &[u8]) -> RequestKey {
        RequestKey { method: "turn/start", key: "k".into(), body: body.to_vec() }
    }

    #[tokio::test]
    async fn a_key_belongs_to_its_thread_and_method_and_a_second_body_differs() {
        let store = WorkStore::default();
        let (one, other) = (Some(ThreadId::new()), Some(ThreadId::new()));
        assert_eq!(store.earlier_request(one, request(b"a")).await.unwrap(), None);
        store.note_answer(one, request(b"a"), "1".into(), "e".into()).await.unwrap();
        let same = EarlierRequest::Same { answer: "1".into(), epoch: "e".into() };
        assert_eq!(store.earlier_request(one, request(b"a")).await.unwrap(), Some(same));
        assert_eq!(store.earlier_request(one, request(b"b")).await.unwrap(), Some(EarlierRequest::Different));
        assert_eq!(store.earlier_request(other, request(b"a")).await.unwrap(), None);
        let steer = RequestKey { method: "turn/steer", ..request(b"a") };
        assert_eq!(store.earlier_request(one, steer).await.unwrap(), None);
        store.forget_answer(one, request(b"a")).await.unwrap();
        assert_eq!(store.earlier_request(one, request(b"a")).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_claim_is_given_once_and_is_gone_with_its_thread() {
        let store = WorkStore::default();
        let id = ThreadId::new();
        assert_eq!(store.claim_answer(Some(id), request(b"a"), "1".into()).await.unwrap(), None);
        let first = EarlierRequest::Same { answer: "1".into(), epoch: String::new() };
        assert_eq!(store.claim_answer(Some(id), request(b"a"), "2".into()).await.unwrap(), Some(first));
        assert_eq!(
            store.claim_answer(Some(id), request(b"b"), "2".into()).await.unwrap(),
            Some(EarlierRequest::Different)
        );
        store.forget(id).await.unwrap();
        assert_eq!(store.claim_answer(Some(id), request(b"b"), "2".into()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_key_of_no_thread_is_forgotten_after_a_day() {
        let store = WorkStore::default();
        store.claim_answer(None, request(b"a"), "1".into()).await.unwrap();
        let age = |ms: i64| {
            let store = store.clone();
            async move {
                store
                    .change(move |transaction| transaction.execute("UPDATE answered SET at_ms = at_ms - ?1", [ms]))
                    .await
                    .unwrap()
            }
        };
        age(LIFETIME_MS - 60_000).await;
        assert!(store.earlier_request(None, request(b"a")).await.unwrap().is_some());
        age(60_000).await;
        assert_eq!(store.earlier_request(None, request(b"b")).await.unwrap(), None);
        assert_eq!(store.claim_answer(None, request(b"b"), "2".into()).await.unwrap(), None);
    }
}

//! Goals and queues in the database. Changes of one thread's goal or queue take turns. Approvals are in
//! `approvals.rs`, the answers to requests in `answered.rs`.

use std::sync::Arc;

use deadpool_postgres::{GenericClient, Object, Transaction};
use loomd_protocol::{ThreadGoalStall, ThreadGoalStatus, UserInput};
use loomd_store::{
    Answer, ApprovalOutcome, ApprovalQuery, ClaimedMessage, EarlierRequest, Enqueued, Goal, GoalChange, MAX_QUEUED,
    QueuePage, QueuedMessage, REMEMBERED, RequestKey, Result, Settled, SharedWork, StaleApprovals, StoredApproval,
    ThreadId,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::database::Database;
use crate::text::storable;

/// Tells this lock apart from others on the same thread.
const LOCK: i64 = 1;

pub(crate) struct PostgresWork(pub(crate) Arc<Database>);

/// A goal as it is written.
#[derive(Serialize, Deserialize)]
struct StoredGoal {
    id: String,
    objective: String,
    status: ThreadGoalStatus,
    token_budget: Option<i64>,
    tokens_used: i64,
    time_used_ms: i64,
    created_at_ms: i64,
    updated_at_ms: i64,
    stalled: Option<ThreadGoalStall>,
    wrapped_up: bool,
    turns: i64,
    idle_turns: i64,
}

impl PostgresWork {
    pub fn new(database: Arc<Database>) -> Self {
        Self(database)
    }

    pub(crate) fn failed(&self, error: tokio_postgres::Error) -> loomd_store::Error {
        self.0.place.query(&error)
    }

    /// A transaction that no other change of the thread's work overlaps.
    async fn locked<'c>(&self, client: &'c mut Object, id: ThreadId) -> Result<Transaction<'c>> {
        let transaction = client.transaction().await.map_err(|error| self.failed(error))?;
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
        let locked = transaction.execute(lock, &[&id.to_string(), &LOCK]).await;
        locked.map_err(|error| self.failed(error))?;
        Ok(transaction)
    }

    pub(crate) async fn commit(&self, transaction: Transaction<'_>) -> Result<()> {
        transaction.commit().await.map_err(|error| self.failed(error))
    }

    async fn read_goal(&self, client: &impl GenericClient, id: ThreadId) -> Result<Option<Goal>> {
        let row = client.query_opt("SELECT goal FROM loomd.goal WHERE thread_id = $1", &[id.as_uuid()]).await;
        let Some(row) = row.map_err(|error| self.failed(error))? else { return Ok(None) };
        let stored: StoredGoal =
            serde_json::from_str(row.get(0)).map_err(|error| self.0.place.corrupt("goal", error))?;
        Ok(Some(stored.into()))
    }

    fn message(&self, row: &Row) -> Result<QueuedMessage> {
        let input = serde_json::from_str(row.get(2)).map_err(|error| self.0.place.corrupt("queued message", error))?;
        Ok(QueuedMessage { id: row.get(0), client_id: row.get(1), input })
    }

    async fn find(
        &self,
        client: &impl GenericClient,
        id: ThreadId,
        message: Option<&str>,
    ) -> Result<Option<QueuedMessage>> {
        let query = "SELECT id, client_id, input FROM loomd.queue WHERE thread_id = $1 AND turn_id IS NULL \
                     AND ($2::text IS NULL OR id = $2::text) ORDER BY place LIMIT 1";
        let row = client.query_opt(query, &[id.as_uuid(), &message.map(storable).as_deref()]).await;
        row.map_err(|error| self.failed(error))?.map(|row| self.message(&row)).transpose()
    }
}

impl SharedWork for PostgresWork {
    fn forget(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            for table in ["goal", "queue", "started", "approval", "answered"] {
                let delete = format!("DELETE FROM loomd.{table} WHERE thread_id = $1");
                transaction.execute(&delete, &[id.as_uuid()]).await.map_err(|error| self.failed(error))?;
            }
            self.commit(transaction).await
        })
    }

    fn goal(&self, id: ThreadId) -> Answer<'_, Option<Goal>> {
        Box::pin(self.0.retry(move || async move { self.read_goal(&self.0.client().await?, id).await }))
    }

    fn change_goal(&self, id: ThreadId, change: GoalChange) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let before = self.read_goal(&transaction, id).await?;
            let mut goal = before.clone();
            change(&mut goal);
            let written = match goal {
                Some(goal) if before.as_ref() != Some(&goal) => {
                    let text = serde_json::to_string(&StoredGoal::from(goal))?;
                    let write = "INSERT INTO loomd.goal (thread_id, goal) VALUES ($1, $2) \
                                 ON CONFLICT (thread_id) DO UPDATE SET goal = excluded.goal";
                    transaction.execute(write, &[id.as_uuid(), &text]).await
                }
                None if before.is_some() => {
                    transaction.execute("DELETE FROM loomd.goal WHERE thread_id = $1", &[id.as_uuid()]).await
                }
                _ => Ok(0),
            };
            written.map_err(|error| self.failed(error))?;
            self.commit(transaction).await
        })
    }

    fn queue_page(&self, id: ThreadId, offset: usize, limit: usize) -> Answer<'_, QueuePage> {
        Box::pin(async move {
            let client = self.0.waiting_client().await?;
            let query = "SELECT id, client_id, input FROM loomd.queue WHERE thread_id = $1 AND turn_id IS NULL \
                         ORDER BY place LIMIT $2 OFFSET $3";
            let (limit, offset) = (number(limit), number(offset));
            let rows = client.query(query, &[id.as_uuid(), &limit.saturating_add(1), &offset]).await;
            let rows = rows.map_err(|error| self.failed(error))?;
            let mut messages = rows.iter().map(|row| self.message(row)).collect::<Result<Vec<_>>>()?;
            let more = number(messages.len()) > limit;
            messages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(QueuePage { messages, more })
        })
    }

    fn has_queued(&self, id: ThreadId) -> Answer<'_, bool> {
        Box::pin(async move {
            let client = self.0.waiting_client().await?;
            let query = "SELECT 1 FROM loomd.queue WHERE thread_id = $1 LIMIT 1";
            let row = client.query_opt(query, &[id.as_uuid()]).await.map_err(|error| self.failed(error))?;
            Ok(row.is_some())
        })
    }

    fn enqueue(&self, id: ThreadId, client_id: String, input: Vec<UserInput>) -> Answer<'_, Enqueued> {
        Box::pin(async move {
            let encoded = serde_json::to_string(&input)?;
            let digest = Sha256::digest(&encoded).to_vec();
            let client_key = storable(&client_id).into_owned();
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let same = "SELECT id, client_id, input, turn_id FROM loomd.queue \
                        WHERE thread_id = $1 AND client_id = $2 AND input = $3 ORDER BY turn_id IS NOT NULL LIMIT 1";
            let same = transaction.query_opt(same, &[id.as_uuid(), &client_key, &encoded]).await;
            if let Some(row) = same.map_err(|error| self.failed(error))? {
                return Ok(match row.get::<_, Option<String>>(3) {
                    None => Enqueued::Present(self.message(&row)?),
                    Some(turn_id) => Enqueued::Started { turn_id },
                });
            }
            let started = "SELECT turn_id FROM loomd.started WHERE thread_id = $1 AND client_id = $2 AND digest = $3";
            let started = transaction.query_opt(started, &[id.as_uuid(), &client_key, &digest]).await;
            if let Some(row) = started.map_err(|error| self.failed(error))? {
                return Ok(Enqueued::Started { turn_id: row.get(0) });
            }
            let places = "SELECT count(*), coalesce(max(place), 0) FROM loomd.queue WHERE thread_id = $1";
            let places = transaction.query_one(places, &[id.as_uuid()]).await.map_err(|error| self.failed(error))?;
            let (queued, last): (i64, i64) = (places.get(0), places.get(1));
            if queued >= number(MAX_QUEUED) {
                return Ok(Enqueued::Full);
            }
            let message = QueuedMessage { id: Uuid::now_v7().to_string(), client_id, input };
            let add = "INSERT INTO loomd.queue (thread_id, id, place, client_id, input) VALUES ($1, $2, $3, $4, $5)";
            let added =
                transaction.execute(add, &[id.as_uuid(), &message.id, &(last + 1), &client_key, &encoded]).await;
            added.map_err(|error| self.failed(error))?;
            self.commit(transaction).await?;
            Ok(Enqueued::Added(message))
        })
    }

    fn update_queued(&self, id: ThreadId, message: String, input: Vec<UserInput>) -> Answer<'_, Option<QueuedMessage>> {
        Box::pin(async move {
            let encoded = serde_json::to_string(&input)?;
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let update = "UPDATE loomd.queue SET input = $3 WHERE thread_id = $1 AND id = $2 AND turn_id IS NULL \
                          RETURNING id, client_id, input";
            let row = transaction.query_opt(update, &[id.as_uuid(), &storable(&message).as_ref(), &encoded]).await;
            let row = row.map_err(|error| self.failed(error))?;
            let updated = row.map(|row| self.message(&row)).transpose()?;
            self.commit(transaction).await?;
            Ok(updated)
        })
    }

    fn delete_queued(&self, id: ThreadId, message: String) -> Answer<'_, bool> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let delete = "DELETE FROM loomd.queue WHERE thread_id = $1 AND id = $2 AND turn_id IS NULL";
            let deleted = transaction.execute(delete, &[id.as_uuid(), &storable(&message).as_ref()]).await;
            let deleted = deleted.map_err(|error| self.failed(error))?;
            self.commit(transaction).await?;
            Ok(deleted > 0)
        })
    }

    fn reorder_queue(&self, id: ThreadId, order: Vec<String>) -> Answer<'_, bool> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let waiting = "SELECT id, place FROM loomd.queue WHERE thread_id = $1 AND turn_id IS NULL ORDER BY place";
            let waiting = transaction.query(waiting, &[id.as_uuid()]).await.map_err(|error| self.failed(error))?;
            let mut known: Vec<String> = waiting.iter().map(|row| row.get(0)).collect();
            let mut wanted = order.clone();
            known.sort_unstable();
            wanted.sort_unstable();
            if wanted != known {
                return Ok(false);
            }
            // The same places, handed out in another order.
            let places: Vec<i64> = waiting.iter().map(|row| row.get(1)).collect();
            let update = "UPDATE loomd.queue q SET place = o.place FROM unnest($2::text[], $3::bigint[]) AS o (id, place) \
                          WHERE q.thread_id = $1 AND q.id = o.id";
            let updated = transaction.execute(update, &[id.as_uuid(), &order, &places]).await;
            updated.map_err(|error| self.failed(error))?;
            self.commit(transaction).await?;
            Ok(true)
        })
    }

    fn queued(&self, id: ThreadId, message: Option<String>) -> Answer<'_, Option<QueuedMessage>> {
        Box::pin(async move { self.find(&self.0.client().await?, id, message.as_deref()).await })
    }

    fn claim(&self, id: ThreadId, message: Option<String>, turn_id: String) -> Answer<'_, Option<QueuedMessage>> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let found = self.find(&transaction, id, message.as_deref()).await?;
            if let Some(found) = &found {
                let claim = "UPDATE loomd.queue SET turn_id = $3 WHERE thread_id = $1 AND id = $2";
                let claimed = transaction.execute(claim, &[id.as_uuid(), &found.id, &turn_id]).await;
                claimed.map_err(|error| self.failed(error))?;
            }
            self.commit(transaction).await?;
            Ok(found)
        })
    }

    fn claims(&self, id: ThreadId) -> Answer<'_, Vec<ClaimedMessage>> {
        Box::pin(async move {
            let client = self.0.waiting_client().await?;
            let query = "SELECT turn_id, client_id FROM loomd.queue WHERE thread_id = $1 AND turn_id IS NOT NULL \
                         ORDER BY place";
            let rows = client.query(query, &[id.as_uuid()]).await.map_err(|error| self.failed(error))?;
            Ok(rows.iter().map(|row| ClaimedMessage { turn_id: row.get(0), client_id: row.get(1) }).collect())
        })
    }

    fn release_claim(&self, id: ThreadId, turn_id: String) -> Answer<'_, ()> {
        Box::pin(async move {
            let client = self.0.waiting_client().await?;
            let release = "UPDATE loomd.queue SET turn_id = NULL WHERE thread_id = $1 AND turn_id = $2";
            let released = client.execute(release, &[id.as_uuid(), &turn_id]).await;
            released.map(drop).map_err(|error| self.failed(error))
        })
    }

    fn settle_claim(&self, id: ThreadId, turn_id: String) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut client = self.0.waiting_client().await?;
            let transaction = self.locked(&mut client, id).await?;
            let remove = "DELETE FROM loomd.queue WHERE thread_id = $1 AND turn_id = $2 RETURNING client_id, input";
            let row = transaction.query_opt(remove, &[id.as_uuid(), &turn_id]).await;
            let Some(row) = row.map_err(|error| self.failed(error))? else { return Ok(()) };
            let digest = Sha256::digest(row.get::<_, &str>(1)).to_vec();
            let remember = "INSERT INTO loomd.started (thread_id, client_id, digest, turn_id, at) \
                            VALUES ($1, $2, $3, $4, clock_timestamp()) ON CONFLICT (thread_id, client_id, digest) \
                            DO UPDATE SET turn_id = excluded.turn_id, at = excluded.at";
            let remembered =
                transaction.execute(remember, &[id.as_uuid(), &row.get::<_, &str>(0), &digest, &turn_id]).await;
            remembered.map_err(|error| self.failed(error))?;
            let forget = "DELETE FROM loomd.started WHERE thread_id = $1 AND at < coalesce((SELECT at FROM \
                          loomd.started WHERE thread_id = $1 ORDER BY at DESC LIMIT 1 OFFSET $2), '-infinity')";
            let forgotten = transaction.execute(forget, &[id.as_uuid(), &REMEMBERED]).await;
            forgotten.map_err(|error| self.failed(error))?;
            self.commit(transaction).await
        })
    }

    fn ask_approval(&self, approval: StoredApproval, stale: Option<StaleApprovals>) -> Answer<'_, ()> {
        Box::pin(async move { self.0.retry(|| self.insert_approval(&approval, stale.as_ref())).await })
    }

    fn settle_approval(&self, id: Uuid, outcome: ApprovalOutcome) -> Answer<'_, Settled> {
        Box::pin(async move {
            let mut repeats = false;
            let again = || self.end_approval(id, &outcome, std::mem::replace(&mut repeats, true));
            self.0.retry(again).await
        })
    }

    fn cancel_stale_approvals(&self, id: ThreadId, stale: StaleApprovals) -> Answer<'_, usize> {
        Box::pin(async move {
            let stale = &stale;
            self.0.retry(|| async move { self.cancel_stale(&self.0.client().await?, id, stale).await }).await
        })
    }

    fn approval(&self, id: Uuid) -> Answer<'_, Option<StoredApproval>> {
        Box::pin(self.0.retry(move || async move { self.find_approval(&self.0.client().await?, id).await }))
    }

    fn approvals_of_turn(&self, id: ThreadId, turn_id: String) -> Answer<'_, Vec<StoredApproval>> {
        Box::pin(async move { self.0.retry(|| self.turn_approvals(id, &turn_id)).await })
    }

    fn earlier_request(&self, id: Option<ThreadId>, request: RequestKey) -> Answer<'_, Option<EarlierRequest>> {
        Box::pin(async move { self.0.retry(|| self.find_answer(id, &request)).await })
    }

    /// May be repeated: it replaces what is there.
    fn note_answer(&self, id: Option<ThreadId>, request: RequestKey, answer: String, epoch: String) -> Answer<'_, ()> {
        Box::pin(async move { self.0.retry(|| self.write_answer(id, &request, &answer, &epoch)).await })
    }

    /// May be repeated: a claim knows itself again.
    fn claim_answer(
        &self,
        id: Option<ThreadId>,
        request: RequestKey,
        answer: String,
    ) -> Answer<'_, Option<EarlierRequest>> {
        Box::pin(async move {
            let claim = Uuid::now_v7();
            self.0.retry(|| self.insert_answer(id, &request, &answer, claim)).await
        })
    }

    fn forget_answer(&self, id: Option<ThreadId>, request: RequestKey) -> Answer<'_, ()> {
        Box::pin(async move { self.0.retry(|| self.remove_answer(id, &request)).await })
    }

    fn approvals(&self, query: ApprovalQuery) -> Answer<'_, Vec<StoredApproval>> {
        Box::pin(async move { self.0.retry(|| self.approval_page(&query)).await })
    }
}

impl From<Goal> for StoredGoal {
    fn from(goal: Goal) -> Self {
        Self {
            id: goal.id.to_string(),
            objective: goal.objective,
            status: goal.status,
            token_budget: goal.token_budget,
            tokens_used: goal.tokens_used,
            time_used_ms: goal.time_used_ms,
            created_at_ms: goal.created_at_ms,
            updated_at_ms: goal.updated_at_ms,
            stalled: goal.stalled,
            wrapped_up: goal.wrapped_up,
            turns: goal.turns,
            idle_turns: goal.idle_turns,
        }
    }
}

impl From<StoredGoal> for Goal {
    fn from(stored: StoredGoal) -> Self {
        Self {
            id: stored.id.parse().unwrap_or_default(),
            objective: stored.objective,
            status: stored.status,
            token_budget: stored.token_budget,
            tokens_used: stored.tokens_used,
            time_used_ms: stored.time_used_ms,
            created_at_ms: stored.created_at_ms,
            updated_at_ms: stored.updated_at_ms,
            stalled: stored.stalled,
            wrapped_up: stored.wrapped_up,
            turns: stored.turns,
            idle_turns: stored.idle_turns,
        }
    }
}

fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

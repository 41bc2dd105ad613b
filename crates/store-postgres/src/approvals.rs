//! Approvals in the database. An approval changes once, in a statement that checks that it is open.

use deadpool_postgres::GenericClient;
use jiff::Timestamp;
use loomd_protocol::JsonValue;
use loomd_store::{
    ApprovalEnd, ApprovalOutcome, ApprovalQuery, Decider, Result, Settled, StaleApprovals, StoredApproval, ThreadId,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::text::storable;
use crate::work::PostgresWork;

fn select(rest: &str) -> String {
    format!(
        "SELECT id, thread_id, turn_id, item_id, method, params, asked_at_ms, deadline_ms, default_decision, state, \
         decision, decided_at_ms, connection, client, role FROM loomd.approval {rest}"
    )
}

impl PostgresWork {
    /// May be repeated: the id is the asker's, and the approval is inserted once.
    pub(crate) async fn insert_approval(
        &self,
        approval: &StoredApproval,
        stale: Option<&StaleApprovals>,
    ) -> Result<()> {
        let mut client = self.0.client().await?;
        let transaction = client.transaction().await.map_err(|error| self.failed(error))?;
        if let Some(stale) = stale {
            self.cancel_stale(&transaction, approval.thread_id, stale).await?;
        }
        let insert = "INSERT INTO loomd.approval (id, thread_id, turn_id, item_id, method, params, asked_at_ms, \
                      deadline_ms, default_decision, state) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open') \
                      ON CONFLICT (id) DO NOTHING";
        let inserted = transaction
            .execute(
                insert,
                &[
                    &approval.id,
                    approval.thread_id.as_uuid(),
                    &storable(&approval.turn_id).as_ref(),
                    &storable(&approval.item_id).as_ref(),
                    &approval.method,
                    &approval.params.to_string(),
                    &approval.asked_at_ms,
                    &approval.deadline_ms,
                    &approval.default_decision,
                ],
            )
            .await;
        inserted.map_err(|error| self.failed(error))?;
        self.commit(transaction).await
    }

    /// May be repeated: an approval that has this very outcome was ended by an earlier try.
    pub(crate) async fn end_approval(&self, id: Uuid, outcome: &ApprovalOutcome, repeats: bool) -> Result<Settled> {
        let client = self.0.client().await?;
        let update = "UPDATE loomd.approval SET state = $2, decision = $3, decided_at_ms = $4, connection = $5, \
                      client = $6, role = $7 WHERE id = $1 AND state = 'open'";
        let by = outcome.by.as_ref();
        let updated = client
            .execute(
                update,
                &[
                    &id,
                    &outcome.end.name(),
                    &outcome.decision.as_ref().map(JsonValue::to_string),
                    &outcome.at_ms,
                    &by.map(|by| storable(&by.connection)).as_deref(),
                    &by.and_then(|by| by.client.as_deref()).map(storable).as_deref(),
                    &by.and_then(|by| by.role.as_deref()).map(storable).as_deref(),
                ],
            )
            .await;
        if updated.map_err(|error| self.failed(error))? > 0 {
            return Ok(Settled::Now);
        }
        let earlier = self.find_approval(&client, id).await?.and_then(|approval| approval.outcome);
        Ok(match earlier {
            Some(earlier) if repeats && earlier == *outcome => Settled::Now,
            Some(earlier) => Settled::Earlier(earlier),
            None => Settled::Unknown,
        })
    }

    pub(crate) async fn cancel_stale(
        &self,
        client: &impl GenericClient,
        id: ThreadId,
        stale: &StaleApprovals,
    ) -> Result<usize> {
        let update = "UPDATE loomd.approval SET state = 'cancelled', decided_at_ms = $2 WHERE thread_id = $1 \
                      AND state = 'open' AND asked_at_ms < $3 AND turn_id IS DISTINCT FROM $4::text";
        let (now, except) = (Timestamp::now().as_millisecond(), stale.except_turn.as_deref().map(storable));
        let updated = client.execute(update, &[id.as_uuid(), &now, &stale.before_ms, &except.as_deref()]).await;
        updated.map(|count| usize::try_from(count).unwrap_or(usize::MAX)).map_err(|error| self.failed(error))
    }

    pub(crate) async fn find_approval(&self, client: &impl GenericClient, id: Uuid) -> Result<Option<StoredApproval>> {
        let row = client.query_opt(&select("WHERE id = $1"), &[&id]).await;
        row.map_err(|error| self.failed(error))?.map(|row| self.stored_approval(&row)).transpose()
    }

    pub(crate) async fn turn_approvals(&self, id: ThreadId, turn_id: &str) -> Result<Vec<StoredApproval>> {
        let client = self.0.client().await?;
        let query = select("WHERE thread_id = $1 AND turn_id = $2 ORDER BY id");
        let rows = client.query(&query, &[id.as_uuid(), &storable(turn_id).as_ref()]).await;
        rows.map_err(|error| self.failed(error))?.iter().map(|row| self.stored_approval(row)).collect()
    }

    pub(crate) async fn approval_page(&self, query: &ApprovalQuery) -> Result<Vec<StoredApproval>> {
        let client = self.0.client().await?;
        let state = match query.open {
            Some(true) => "AND state = 'open'",
            Some(false) => "AND state <> 'open'",
            None => "",
        };
        let rest =
            format!("WHERE id < $1 AND ($2::uuid IS NULL OR thread_id = $2::uuid) {state} ORDER BY id DESC LIMIT $3");
        let thread_id = query.thread_id.map(|id| *id.as_uuid());
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let rows = client.query(&select(&rest), &[&query.before.unwrap_or(Uuid::max()), &thread_id, &limit]).await;
        rows.map_err(|error| self.failed(error))?.iter().map(|row| self.stored_approval(row)).collect()
    }

    fn stored_approval(&self, row: &Row) -> Result<StoredApproval> {
        let json = |text: &str| {
            serde_json::from_str::<JsonValue>(text).map_err(|error| self.0.place.corrupt("approval", error))
        };
        let outcome = match ApprovalEnd::named(row.get(9)) {
            None => None,
            Some(end) => Some(ApprovalOutcome {
                end,
                decision: row.get::<_, Option<&str>>(10).map(json).transpose()?,
                at_ms: row.get::<_, Option<i64>>(11).unwrap_or_default(),
                by: row.get::<_, Option<String>>(12).map(|connection| Decider {
                    connection,
                    client: row.get(13),
                    role: row.get(14),
                }),
            }),
        };
        Ok(StoredApproval {
            id: row.get(0),
            thread_id: row.get::<_, Uuid>(1).into(),
            turn_id: row.get(2),
            item_id: row.get(3),
            method: row.get(4),
            params: json(row.get(5))?,
            asked_at_ms: row.get(6),
            deadline_ms: row.get(7),
            default_decision: row.get(8),
            outcome,
        })
    }
}

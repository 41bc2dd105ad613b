//! Approvals: what turns requested of clients, and what was decided. A stored approval changes once, from open to its
//! outcome, and is kept as long as its thread.

use loomd_protocol::JsonValue;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::WorkStore;
use crate::ThreadId;
use crate::error::Result;

/// An approval as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredApproval {
    /// Of version 7: the ids of later approvals are greater.
    pub id: Uuid,
    pub thread_id: ThreadId,
    pub turn_id: String,
    /// Empty for requests that belong to no item.
    pub item_id: String,
    /// The method and the params of the server request.
    pub method: String,
    pub params: JsonValue,
    pub asked_at_ms: i64,
    pub deadline_ms: Option<i64>,
    /// The decision at the deadline.
    pub default_decision: Option<String>,
    /// `None` while it is open.
    pub outcome: Option<ApprovalOutcome>,
}

/// How an approval ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalOutcome {
    pub end: ApprovalEnd,
    /// `None` when it was cancelled.
    pub decision: Option<JsonValue>,
    pub at_ms: i64,
    pub by: Option<Decider>,
}

/// Why an approval is no longer open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalEnd {
    Decided,
    /// The default decision counts, because the deadline has passed.
    Expired,
    /// Nothing waits for it any more, and nothing was decided.
    Cancelled,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// The connection, by its number in its server process, or what decided in place of a client.
    pub connection: String,
    /// The name of the client.
    pub client: Option<String>,
    /// The role of the client, if that limits what it may do.
    pub role: Option<String>,
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// It counts.
    Now,
    /// This one counts, which came before it.
    Earlier(ApprovalOutcome),
    /// There is no such approval.
    Unknown,
}

/// Open approvals that nothing waits for any more: those of a thread that an earlier load of it has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleApprovals {
    /// When the thread was loaded.
    pub before_ms: i64,
    /// The turn that goes on, and waits for its own.
    pub except_turn: Option<String>,
}

/// A page of approvals, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalQuery {
    pub thread_id: Option<ThreadId>,
    /// Only open ones, or only those that are not.
    pub open: Option<bool>,
    /// Only those that are older than this one.
    pub before: Option<Uuid>,
    pub limit: usize,
}

impl ApprovalEnd {
    /// The word for it in databases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// The end with this name; `None` for the name of the open state.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Decided, Self::Expired, Self::Cancelled].into_iter().find(|end| end.name() == name)
    }
}

impl ApprovalOutcome {
    /// It was closed without a decision.
    pub fn cancelled() -> Self {
        Self { end: ApprovalEnd::Cancelled, decision: None, at_ms: now_ms(), by: None }
    }
}

impl WorkStore {
    /// Stores an open approval, and cancels stale ones of its thread in the same transaction.
    pub async fn ask_approval(&self, approval: StoredApproval, stale: Option<StaleApprovals>) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.ask_approval(approval, stale).await;
        }
        self.change(move |transaction| {
            if let Some(stale) = &stale {
                cancel_stale(transaction, approval.thread_id, stale)?;
            }
            insert(transaction, &approval)
        })
        .await
    }

    /// Ends an approval, unless it has ended.
    pub async fn settle_approval(&self, id: Uuid, outcome: ApprovalOutcome) -> Result<Settled> {
        if let Some(shared) = self.as_shared() {
            return shared.settle_approval(id, outcome).await;
        }
        self.change(move |transaction| {
            if settle(transaction, id, &outcome)? {
                return Ok(Settled::Now);
            }
            let earlier = find(transaction, id)?.and_then(|approval| approval.outcome);
            Ok(earlier.map_or(Settled::Unknown, Settled::Earlier))
        })
        .await
    }

    /// Cancels stale approvals of a thread; how many there were.
    pub async fn cancel_stale_approvals(&self, id: ThreadId, stale: StaleApprovals) -> Result<usize> {
        if let Some(shared) = self.as_shared() {
            return shared.cancel_stale_approvals(id, stale).await;
        }
        self.read(0, move |connection| cancel_stale(connection, id, &stale)).await
    }

    /// An approval of any thread.
    pub async fn approval(&self, id: Uuid) -> Result<Option<StoredApproval>> {
        if let Some(shared) = self.as_shared() {
            return shared.approval(id).await;
        }
        self.read(None, move |connection| find(connection, id)).await
    }

    /// The approvals of a turn, the oldest first.
    pub async fn approvals_of_turn(&self, id: ThreadId, turn_id: String) -> Result<Vec<StoredApproval>> {
        if let Some(shared) = self.as_shared() {
            return shared.approvals_of_turn(id, turn_id).await;
        }
        self.read(Vec::new(), move |connection| {
            let mut query = connection.prepare_cached(&select("WHERE thread_id = ?1 AND turn_id = ?2 ORDER BY id"))?;
            query.query_map(params![id.to_string(), turn_id], read)?.collect()
        })
        .await
    }

    /// The approvals that a query asks for, the newest first.
    pub async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<StoredApproval>> {
        if let Some(shared) = self.as_shared() {
            return shared.approvals(query).await;
        }
        self.read(Vec::new(), move |connection| page(connection, &query)).await
    }
}

fn select(rest: &str) -> String {
    format!(
        "SELECT id, thread_id, turn_id, item_id, method, params, asked_at_ms, deadline_ms, default_decision, state, \
         decision, decided_at_ms, connection, client, role FROM approvals {rest}"
    )
}

fn insert(transaction: &Transaction<'_>, approval: &StoredApproval) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO approvals (id, thread_id, turn_id, item_id, method, params, asked_at_ms, deadline_ms, \
         default_decision, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open')",
    )?;
    insert.execute(params![
        approval.id.to_string(),
        approval.thread_id.to_string(),
        approval.turn_id,
        approval.item_id,
        approval.method,
        approval.params.to_string(),
        approval.asked_at_ms,
        approval.deadline_ms,
        approval.default_decision,
    ])?;
    Ok(())
}

/// False when the approval is not open.
fn settle(connection: &Connection, id: Uuid, outcome: &ApprovalOutcome) -> rusqlite::Result<bool> {
    let mut update = connection.prepare_cached(
        "UPDATE approvals SET state = ?2, decision = ?3, decided_at_ms = ?4, connection = ?5, client = ?6, role = ?7 \
         WHERE id = ?1 AND state = 'open'",
    )?;
    let by = outcome.by.as_ref();
    let changed = update.execute(params![
        id.to_string(),
        outcome.end.name(),
        outcome.decision.as_ref().map(JsonValue::to_string),
        outcome.at_ms,
        by.map(|by| &by.connection),
        by.and_then(|by| by.client.as_ref()),
        by.and_then(|by| by.role.as_ref()),
    ])?;
    Ok(changed > 0)
}

fn cancel_stale(connection: &Connection, id: ThreadId, stale: &StaleApprovals) -> rusqlite::Result<usize> {
    let mut update = connection.prepare_cached(
        "UPDATE approvals SET state = 'cancelled', decided_at_ms = ?2 WHERE thread_id = ?1 AND state = 'open' \
         AND asked_at_ms < ?3 AND turn_id IS NOT ?4",
    )?;
    update.execute(params![id.to_string(), now_ms(), stale.before_ms, stale.except_turn])
}

fn find(connection: &Connection, id: Uuid) -> rusqlite::Result<Option<StoredApproval>> {
    connection.prepare_cached(&select("WHERE id = ?1"))?.query_row([id.to_string()], read).optional()
}

fn page(connection: &Connection, query: &ApprovalQuery) -> rusqlite::Result<Vec<StoredApproval>> {
    let mut conditions = vec!["id < ?1"];
    if query.thread_id.is_some() {
        conditions.push("thread_id = ?2");
    } else {
        conditions.push("?2 IS NULL");
    }
    match query.open {
        Some(true) => conditions.push("state = 'open'"),
        Some(false) => conditions.push("state <> 'open'"),
        None => {}
    }
    let rest = format!("WHERE {} ORDER BY id DESC LIMIT ?3", conditions.join(" AND "));
    let before = query.before.unwrap_or(Uuid::max()).to_string();
    let thread_id = query.thread_id.map(|id| id.to_string());
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    connection.prepare_cached(&select(&rest))?.query_map(params![before, thread_id, limit], read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredApproval> {
    let outcome = match ApprovalEnd::named(&row.get::<_, String>(9)?) {
        None => None,
        Some(end) => Some(ApprovalOutcome {
            end,
            decision: row.get::<_, Option<String>>(10)?.map(|decision| json(10, &decision)).transpose()?,
            at_ms: row.get(11)?,
            by: match row.get(12)? {
                Some(connection) => Some(Decider { connection, client: row.get(13)?, role: row.get(14)? }),
                None => None,
            },
        }),
    };
    Ok(StoredApproval {
        id: parsed(0, &row.get::<_, String>(0)?)?,
        thread_id: parsed(1, &row.get::<_, String>(1)?)?,
        turn_id: row.get(2)?,
        item_id: row.get(3)?,
        method: row.get(4)?,
        params: json(5, &row.get::<_, String>(5)?)?,
        asked_at_ms: row.get(6)?,
        deadline_ms: row.get(7)?,
        default_decision: row.get(8)?,
        outcome,
    })
}

fn json(column: usize, text: &str) -> rusqlite::Result<JsonValue> {
    serde_json::from_str(text).map_err(|error| corrupt(column, error))
}

fn parsed<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    column: usize,
    text: &str,
) -> rusqlite::Result<T> {
    text.parse().map_err(|error| corrupt(column, error))
}

fn corrupt(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

//! The stored goal of a thread.

use std::sync::Arc;

use loomd_protocol::{ThreadGoal, ThreadGoalStall, ThreadGoalStatus};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::WorkStore;
use crate::ThreadId;
use crate::error::Result;

/// A goal as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Another one for every new goal of the thread.
    pub id: Uuid,
    pub objective: String,
    pub status: ThreadGoalStatus,
    pub token_budget: Option<i64>,
    pub tokens_used: i64,
    pub time_used_ms: i64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub stalled: Option<ThreadGoalStall>,
    /// The model was asked to come to an end because the budget is used up.
    pub wrapped_up: bool,
    /// Turns that were started for it.
    pub turns: i64,
    /// The last of them, in a row, that called no tool.
    pub idle_turns: i64,
}

impl Goal {
    /// The goal as clients see it.
    pub fn to_wire(&self, id: ThreadId) -> ThreadGoal {
        ThreadGoal {
            thread_id: id.to_string(),
            objective: self.objective.clone(),
            status: self.status,
            token_budget: self.token_budget,
            tokens_used: self.tokens_used,
            time_used_seconds: self.time_used_ms / 1000,
            created_at: self.created_at_ms.div_euclid(1000),
            updated_at: self.updated_at_ms.div_euclid(1000),
            stalled: self.stalled.filter(|_| self.status == ThreadGoalStatus::Active),
        }
    }
}

impl WorkStore {
    /// The goal of a thread.
    pub async fn goal(&self, id: ThreadId) -> Result<Option<Goal>> {
        if let Some(shared) = self.as_shared() {
            return shared.goal(id).await;
        }
        self.read(None, move |connection| read(connection, id)).await
    }

    /// Changes the goal of a thread, in one transaction. `change` gets the stored goal and leaves what is to be stored.
    pub async fn change_goal<T: Send + 'static>(
        &self,
        id: ThreadId,
        change: impl FnOnce(&mut Option<Goal>) -> T + Send + 'static,
    ) -> Result<T> {
        if let Some(shared) = self.as_shared() {
            let changed = Arc::new(Mutex::new(None));
            let result = Arc::clone(&changed);
            let change = move |goal: &mut Option<Goal>| *result.lock() = Some(change(goal));
            shared.change_goal(id, Box::new(change)).await?;
            return changed.lock().take().ok_or(crate::Error::Stopped);
        }
        self.change(move |transaction| {
            let before = read(transaction, id)?;
            let mut goal = before.clone();
            let changed = change(&mut goal);
            match &goal {
                Some(goal) if before.as_ref() != Some(goal) => write(transaction, id, goal)?,
                None if before.is_some() => {
                    transaction.execute("DELETE FROM goals WHERE thread_id = ?1", [id.to_string()])?;
                }
                _ => {}
            }
            Ok(changed)
        })
        .await
    }
}

fn read(connection: &Connection, id: ThreadId) -> rusqlite::Result<Option<Goal>> {
    let mut query = connection.prepare_cached(
        "SELECT goal_id, objective, status, token_budget, tokens_used, time_used_ms, created_at_ms, updated_at_ms, \
         stalled, wrapped_up, turns, idle_turns FROM goals WHERE thread_id = ?1",
    )?;
    query.query_row([id.to_string()], decode).optional()
}

fn decode(row: &Row<'_>) -> rusqlite::Result<Goal> {
    let text = |column: usize| row.get::<_, String>(column);
    let stalled: Option<String> = row.get(8)?;
    Ok(Goal {
        id: text(0)?.parse().unwrap_or_default(),
        objective: text(1)?,
        status: status(&text(2)?),
        token_budget: row.get(3)?,
        tokens_used: row.get(4)?,
        time_used_ms: row.get(5)?,
        created_at_ms: row.get(6)?,
        updated_at_ms: row.get(7)?,
        stalled: stalled.map(|reason| match &*reason {
            "deferred" => ThreadGoalStall::Deferred,
            _ => ThreadGoalStall::Interrupted,
        }),
        wrapped_up: row.get(9)?,
        turns: row.get(10)?,
        idle_turns: row.get(11)?,
    })
}

fn write(connection: &Connection, id: ThreadId, goal: &Goal) -> rusqlite::Result<()> {
    let stalled = goal.stalled.map(|reason| match reason {
        ThreadGoalStall::Interrupted => "interrupted",
        ThreadGoalStall::Deferred => "deferred",
    });
    connection.execute(
        "INSERT OR REPLACE INTO goals (thread_id, goal_id, objective, status, token_budget, tokens_used, time_used_ms, \
         created_at_ms, updated_at_ms, stalled, wrapped_up, turns, idle_turns) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            id.to_string(),
            goal.id.to_string(),
            goal.objective,
            name(goal.status),
            goal.token_budget,
            goal.tokens_used,
            goal.time_used_ms,
            goal.created_at_ms,
            goal.updated_at_ms,
            stalled,
            goal.wrapped_up,
            goal.turns,
            goal.idle_turns,
        ],
    )?;
    Ok(())
}

const STATUSES: [(ThreadGoalStatus, &str); 6] = [
    (ThreadGoalStatus::Active, "active"),
    (ThreadGoalStatus::Paused, "paused"),
    (ThreadGoalStatus::Blocked, "blocked"),
    (ThreadGoalStatus::UsageLimited, "usage_limited"),
    (ThreadGoalStatus::BudgetLimited, "budget_limited"),
    (ThreadGoalStatus::Complete, "complete"),
];

fn name(status: ThreadGoalStatus) -> &'static str {
    STATUSES.iter().find(|(known, _)| *known == status).map_or("paused", |(_, name)| name)
}

/// A status that this release does not know starts no turns.
fn status(name: &str) -> ThreadGoalStatus {
    STATUSES.iter().find(|(_, known)| *known == name).map_or(ThreadGoalStatus::Paused, |(status, _)| *status)
}

//! The stored queue of a thread. A message is claimed for a turn before the turn starts, and removed when the turn has
//! ended; a claim that outlives its process is settled by whoever takes the thread's lease next.

use loomd_protocol::{QueuedSubmission, UserInput};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::WorkStore;
use crate::ThreadId;
use crate::error::Result;

/// The most messages in one queue; more are refused.
pub const MAX_QUEUED: usize = 1024;

/// The number of started messages that are remembered for each thread, so that they are not queued again.
pub const REMEMBERED: i64 = 256;

/// A user message in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    pub id: String,
    /// The id that the client gave it.
    pub client_id: String,
    pub input: Vec<UserInput>,
}

impl QueuedMessage {
    /// The message as clients see it.
    pub fn to_wire(&self) -> QueuedSubmission {
        QueuedSubmission {
            id: self.id.clone(),
            input: self.input.clone(),
            client_user_message_id: self.client_id.clone(),
        }
    }
}

/// A message that was claimed for a turn which may or may not have started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedMessage {
    pub turn_id: String,
    pub client_id: String,
}

/// A page of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePage {
    pub messages: Vec<QueuedMessage>,
    /// Whether there are more behind it.
    pub more: bool,
}

/// What became of a message that was to be queued.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    Added(QueuedMessage),
    /// The same message, by its client id and input, is queued already.
    Present(QueuedMessage),
    /// The same message has become a turn.
    Started {
        turn_id: String,
    },
    /// There are [`MAX_QUEUED`] messages.
    Full,
}

impl WorkStore {
    /// The messages that wait, in order.
    pub async fn queue_page(&self, id: ThreadId, offset: usize, limit: usize) -> Result<QueuePage> {
        if let Some(shared) = self.as_shared() {
            return shared.queue_page(id, offset, limit).await;
        }
        let none = QueuePage { messages: Vec::new(), more: false };
        self.read(none, move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT id, client_id, input FROM queue WHERE thread_id = ?1 AND turn_id IS NULL ORDER BY place \
                 LIMIT ?2 OFFSET ?3",
            )?;
            let (limit, offset) = (count(limit), count(offset));
            let rows = query.query_map(params![id.to_string(), limit.saturating_add(1), offset], decode)?;
            let mut messages = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let more = count(messages.len()) > limit;
            messages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(QueuePage { messages, more })
        })
        .await
    }

    /// Whether messages wait, or were claimed and not settled.
    pub async fn has_queued(&self, id: ThreadId) -> Result<bool> {
        if let Some(shared) = self.as_shared() {
            return shared.has_queued(id).await;
        }
        self.read(false, move |connection| {
            let mut query = connection.prepare_cached("SELECT 1 FROM queue WHERE thread_id = ?1 LIMIT 1")?;
            query.exists([id.to_string()])
        })
        .await
    }

    /// Queues a message behind the others.
    pub async fn enqueue(&self, id: ThreadId, client_id: String, input: Vec<UserInput>) -> Result<Enqueued> {
        if let Some(shared) = self.as_shared() {
            return shared.enqueue(id, client_id, input).await;
        }
        let encoded = serde_json::to_string(&input)?;
        self.change(move |transaction| {
            let thread = id.to_string();
            let mut same = transaction.prepare_cached(
                "SELECT id, client_id, input, turn_id FROM queue \
                 WHERE thread_id = ?1 AND client_id = ?2 AND input = ?3 ORDER BY turn_id IS NOT NULL LIMIT 1",
            )?;
            let same = same
                .query_row(params![thread, client_id, encoded], |row| {
                    Ok((decode(row)?, row.get::<_, Option<String>>(3)?))
                })
                .optional()?;
            match same {
                Some((message, None)) => return Ok(Enqueued::Present(message)),
                Some((_, Some(turn_id))) => return Ok(Enqueued::Started { turn_id }),
                None => {}
            }
            let mut started = transaction.prepare_cached(
                "SELECT turn_id FROM started WHERE thread_id = ?1 AND client_id = ?2 AND digest = ?3",
            )?;
            let started =
                started.query_row(params![thread, client_id, digest(id, &encoded)], |row| row.get(0)).optional()?;
            if let Some(turn_id) = started {
                return Ok(Enqueued::Started { turn_id });
            }
            let (queued, last): (i64, i64) = transaction.query_row(
                "SELECT count(*), coalesce(max(place), 0) FROM queue WHERE thread_id = ?1",
                [&thread],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            if queued >= count(MAX_QUEUED) {
                return Ok(Enqueued::Full);
            }
            let message = QueuedMessage { id: Uuid::now_v7().to_string(), client_id, input };
            transaction.execute(
                "INSERT INTO queue (thread_id, id, place, client_id, input) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![thread, message.id, last + 1, message.client_id, encoded],
            )?;
            Ok(Enqueued::Added(message))
        })
        .await
    }

    /// Replaces the input of a message that waits; `None` when there is no such message.
    pub async fn update_queued(
        &self,
        id: ThreadId,
        message: String,
        input: Vec<UserInput>,
    ) -> Result<Option<QueuedMessage>> {
        if let Some(shared) = self.as_shared() {
            return shared.update_queued(id, message, input).await;
        }
        let encoded = serde_json::to_string(&input)?;
        self.change(move |transaction| {
            let thread = id.to_string();
            let changed = transaction.execute(
                "UPDATE queue SET input = ?3 WHERE thread_id = ?1 AND id = ?2 AND turn_id IS NULL",
                params![thread, message, encoded],
            )?;
            if changed == 0 {
                return Ok(None);
            }
            find(transaction, &thread, Some(&message))
        })
        .await
    }

    /// Removes a message that waits; whether there was one.
    pub async fn delete_queued(&self, id: ThreadId, message: String) -> Result<bool> {
        if let Some(shared) = self.as_shared() {
            return shared.delete_queued(id, message).await;
        }
        self.change(move |transaction| {
            let deleted = transaction.execute(
                "DELETE FROM queue WHERE thread_id = ?1 AND id = ?2 AND turn_id IS NULL",
                params![id.to_string(), message],
            )?;
            Ok(deleted > 0)
        })
        .await
    }

    /// Puts the messages that wait into another order. Changes nothing, and returns false, unless `order` names each of
    /// them once.
    pub async fn reorder_queue(&self, id: ThreadId, order: Vec<String>) -> Result<bool> {
        if let Some(shared) = self.as_shared() {
            return shared.reorder_queue(id, order).await;
        }
        self.change(move |transaction| {
            let thread = id.to_string();
            let waiting = waiting(transaction, &thread)?;
            let (mut wanted, mut known) = (order.clone(), waiting.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
            wanted.sort_unstable();
            known.sort_unstable();
            if wanted != known {
                return Ok(false);
            }
            // The same places, handed out in another order.
            for (message, (_, place)) in order.iter().zip(&waiting) {
                transaction.execute(
                    "UPDATE queue SET place = ?3 WHERE thread_id = ?1 AND id = ?2",
                    params![thread, message, place],
                )?;
            }
            Ok(true)
        })
        .await
    }

    /// A message that waits: the first one, or a certain one.
    pub async fn queued(&self, id: ThreadId, message: Option<String>) -> Result<Option<QueuedMessage>> {
        if let Some(shared) = self.as_shared() {
            return shared.queued(id, message).await;
        }
        self.read(None, move |connection| find(connection, &id.to_string(), message.as_deref())).await
    }

    /// Claims a message for a turn: the first one, or a certain one. The caller holds the thread's lease.
    pub async fn claim(&self, id: ThreadId, message: Option<String>, turn_id: String) -> Result<Option<QueuedMessage>> {
        if let Some(shared) = self.as_shared() {
            return shared.claim(id, message, turn_id).await;
        }
        self.change(move |transaction| {
            let thread = id.to_string();
            let found = find(transaction, &thread, message.as_deref())?;
            if let Some(found) = &found {
                transaction.execute(
                    "UPDATE queue SET turn_id = ?3 WHERE thread_id = ?1 AND id = ?2",
                    params![thread, found.id, turn_id],
                )?;
            }
            Ok(found)
        })
        .await
    }

    /// Messages that are claimed, whether or not their turns have started.
    pub async fn claims(&self, id: ThreadId) -> Result<Vec<ClaimedMessage>> {
        if let Some(shared) = self.as_shared() {
            return shared.claims(id).await;
        }
        self.read(Vec::new(), move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT turn_id, client_id FROM queue WHERE thread_id = ?1 AND turn_id IS NOT NULL ORDER BY place",
            )?;
            let rows = query.query_map([id.to_string()], |row| {
                Ok(ClaimedMessage { turn_id: row.get(0)?, client_id: row.get(1)? })
            })?;
            rows.collect()
        })
        .await
    }

    /// Gives up a claim: the message waits again, where it was.
    pub async fn release_claim(&self, id: ThreadId, turn_id: String) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.release_claim(id, turn_id).await;
        }
        self.change(move |transaction| {
            transaction.execute(
                "UPDATE queue SET turn_id = NULL WHERE thread_id = ?1 AND turn_id = ?2",
                params![id.to_string(), turn_id],
            )?;
            Ok(())
        })
        .await
    }

    /// Removes the message that was claimed for a turn, which is in the rollout now.
    pub async fn settle_claim(&self, id: ThreadId, turn_id: String) -> Result<()> {
        if let Some(shared) = self.as_shared() {
            return shared.settle_claim(id, turn_id).await;
        }
        self.change(move |transaction| {
            let thread = id.to_string();
            let claimed: Option<(String, String)> = transaction
                .query_row(
                    "SELECT client_id, input FROM queue WHERE thread_id = ?1 AND turn_id = ?2",
                    params![thread, turn_id],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let Some((client_id, input)) = claimed else { return Ok(()) };
            transaction.execute("DELETE FROM queue WHERE thread_id = ?1 AND turn_id = ?2", params![thread, turn_id])?;
            remember(transaction, id, &client_id, &input, &turn_id)
        })
        .await
    }
}

/// Remembers that a message has become a turn; the oldest ones are forgotten.
fn remember(
    transaction: &Transaction<'_>,
    id: ThreadId,
    client_id: &str,
    input: &str,
    turn_id: &str,
) -> rusqlite::Result<()> {
    let thread = id.to_string();
    transaction.execute(
        "INSERT OR REPLACE INTO started (thread_id, client_id, digest, turn_id, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![thread, client_id, digest(id, input), turn_id, jiff::Timestamp::now().as_millisecond()],
    )?;
    transaction.execute(
        "DELETE FROM started WHERE thread_id = ?1 AND at_ms < coalesce((SELECT at_ms FROM started \
         WHERE thread_id = ?1 ORDER BY at_ms DESC LIMIT 1 OFFSET ?2), 0)",
        params![thread, REMEMBERED],
    )?;
    Ok(())
}

fn find(connection: &Connection, thread: &str, message: Option<&str>) -> rusqlite::Result<Option<QueuedMessage>> {
    let mut query = connection.prepare_cached(
        "SELECT id, client_id, input FROM queue WHERE thread_id = ?1 AND turn_id IS NULL AND (?2 IS NULL OR id = ?2) \
         ORDER BY place LIMIT 1",
    )?;
    query.query_row(params![thread, message], decode).optional()
}

/// The ids and places of the messages that wait, in order.
fn waiting(connection: &Connection, thread: &str) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut query = connection
        .prepare_cached("SELECT id, place FROM queue WHERE thread_id = ?1 AND turn_id IS NULL ORDER BY place")?;
    let rows = query.query_map([thread], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn decode(row: &Row<'_>) -> rusqlite::Result<QueuedMessage> {
    let input: String = row.get(2)?;
    let input = serde_json::from_str(&input)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, Box::new(error)))?;
    Ok(QueuedMessage { id: row.get(0)?, client_id: row.get(1)?, input })
}

fn digest(id: ThreadId, input: &str) -> [u8; 16] {
    Uuid::new_v5(id.as_uuid(), input.as_bytes()).into_bytes()
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

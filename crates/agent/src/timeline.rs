//! `thread/timeline/list`: turns and their items as one list of events, which is read from its end.

use loomd_protocol::{SortDirection, ThreadTimelineEntry as Entry, ThreadTimelineListResponse, Turn, TurnStatus};
use loomd_store::ThreadId;
use serde::{Deserialize, Serialize};

use crate::paging::page_rows;
use crate::refusal::Refusal;
use crate::threads::Threads;

/// The positions of a turn: its number times this, and so many entries at most.
const PER_TURN: u64 = 1 << 20;

/// The oldest entry of a page.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TimelineCursor {
    turn_id: String,
    before: u64,
}

impl Threads {
    /// A page of a thread's timeline: the newest entries, or those before a cursor, in ascending order.
    pub async fn timeline(
        &self,
        id: ThreadId,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<ThreadTimelineListResponse, Refusal> {
        let bad = || Refusal::invalid("invalid thread timeline cursor");
        let before: Option<TimelineCursor> =
            cursor.map(|text| serde_json::from_str(text).map_err(|_| bad())).transpose()?;
        let limit = page_rows(limit);
        let (mut found, mut known): (Vec<Entry>, bool) = (Vec::new(), before.is_none());
        self.each_turn(
            id,
            before.as_ref().map(|before| before.turn_id.as_str()),
            SortDirection::Desc,
            |number, turn| {
                known = true;
                let entries = entries(number as u64, turn).into_iter().rev();
                found.extend(
                    entries.filter(|entry| before.as_ref().is_none_or(|before| position(entry) < before.before)),
                );
                found.len() <= limit
            },
        )
        .await?;
        if !known {
            return Err(bad());
        }
        let more = found.len() > limit;
        found.truncate(limit);
        found.reverse();
        let oldest = found.first().filter(|_| more).and_then(|entry| {
            let (turn_id, before) = (turn_id(entry)?.to_owned(), position(entry));
            serde_json::to_string(&TimelineCursor { turn_id, before }).ok()
        });
        Ok(ThreadTimelineListResponse { data: found, next_cursor: oldest, active_realtime_session_at_page_start: None })
    }
}

/// A turn's start, its items and its end, unless it is running.
fn entries(number: u64, turn: Turn) -> Vec<Entry> {
    let Turn { id, items, status, error, started_at, completed_at, duration_ms, .. } = turn;
    let first = number * PER_TURN;
    let mut entries = vec![Entry::TurnStarted { position: first, turn_id: id.clone(), started_at }];
    for (item, position) in items.into_iter().zip(first + 1..first + PER_TURN - 1) {
        entries.push(Entry::Item { position, turn_id: id.clone(), item });
    }
    if status != TurnStatus::InProgress {
        entries.push(Entry::TurnCompleted {
            position: first + PER_TURN - 1,
            turn_id: id,
            status,
            error,
            started_at,
            completed_at,
            duration_ms,
        });
    }
    entries
}

fn position(entry: &Entry) -> u64 {
    match entry {
        Entry::TurnStarted { position, .. }
        | Entry::Item { position, .. }
        | Entry::TurnCompleted { position, .. }
        | Entry::Realtime { position, .. } => *position,
    }
}

fn turn_id(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::TurnStarted { turn_id, .. } | Entry::Item { turn_id, .. } | Entry::TurnCompleted { turn_id, .. } => {
            Some(turn_id)
        }
        Entry::Realtime { .. } => None,
    }
}

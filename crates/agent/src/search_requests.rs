//! Requests for parts of a thread's history: the places where a term occurs, items by their ids.

use std::collections::HashSet;

use loomd_protocol::{
    ServerNotification, SortDirection, Thread as WireThread, ThreadItem, ThreadItemEntry, ThreadSearchOccurrence,
    ThreadSearchOccurrencesResponse, ThreadSearchTextRange, ThreadSortKey, ThreadSourceKind, Turn, UserInput,
};
use loomd_store::search::{Snippet, Term};
use loomd_store::{Error, ListQuery, ThreadId};
use serde::{Deserialize, Serialize};

use crate::paging::{cursor_of_turn, page_rows};
use crate::refusal::Refusal;
use crate::threads::Threads;
use crate::view::Persistence;

/// All sources of threads.
const EVERY_SOURCE: [ThreadSourceKind; 6] = [
    ThreadSourceKind::Cli,
    ThreadSourceKind::Vscode,
    ThreadSourceKind::Exec,
    ThreadSourceKind::AppServer,
    ThreadSourceKind::SubAgent,
    ThreadSourceKind::Unknown,
];

/// The place of a hit: its item, and its number in that item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OccurrenceCursor {
    turn_id: String,
    item_id: String,
    number: usize,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Stored,
    /// Loaded, and not stored before its first message.
    Pending,
    /// Loaded, and never stored.
    Ephemeral,
    Missing,
}

impl Threads {
    /// Where a thread is, loaded or not.
    pub async fn presence(&self, id: ThreadId) -> Result<Presence, Refusal> {
        let _lane = self.lanes.enter(id).await;
        match self.persistence(id) {
            Some((Persistence::Stored, _)) => return Ok(Presence::Stored),
            Some((Persistence::Pending, _)) => return Ok(Presence::Pending),
            Some((Persistence::Ephemeral, _)) => return Ok(Presence::Ephemeral),
            None => {}
        }
        match self.store.find(id, None).await {
            Ok(_) => Ok(Presence::Stored),
            Err(Error::NotFound { .. }) => Ok(Presence::Missing),
            Err(error) => Err(error.into()),
        }
    }

    /// A loaded thread that is not stored before its first message.
    pub fn pending(&self, id: ThreadId) -> Option<WireThread> {
        let loaded = self.get(id)?;
        (loaded.view.persistence() == Persistence::Pending).then(|| loaded.view.thread())
    }

    /// Whether a stored thread is archived; `None` for a thread that is not stored.
    pub async fn is_archived(&self, id: ThreadId) -> Result<Option<bool>, Refusal> {
        match self.store.find(id, None).await {
            Ok(found) => Ok(Some(found.archived)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// When any of these threads changed last, in Unix seconds.
    pub async fn latest_change(&self, threads: Vec<ThreadId>) -> Result<Option<i64>, Refusal> {
        if threads.is_empty() {
            return Ok(None);
        }
        let mut latest = None;
        for archived in [false, true] {
            let query = ListQuery {
                sort: ThreadSortKey::RecencyAt,
                limit: 1,
                archived,
                providers: None,
                kinds: Some(EVERY_SOURCE.to_vec()),
                only: Some(threads.clone()),
                ..ListQuery::new("")
            };
            let page = self.store.list(query).await?;
            latest = latest.max(page.threads.first().map(|thread| thread.updated_at));
        }
        Ok(latest)
    }

    /// Publishes a notification to the subscribers of a thread, if it is loaded.
    pub async fn notify_subscribers(&self, id: ThreadId, notification: ServerNotification) {
        if let Some(loaded) = self.get(id) {
            loaded.events.publish(notification).await;
        }
    }

    /// How many turns are running.
    pub fn running_turns(&self) -> usize {
        self.busy.turns()
    }

    /// A page of the places where a term occurs in the messages of a thread, oldest first.
    pub async fn occurrences(
        &self,
        id: ThreadId,
        term: &str,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<ThreadSearchOccurrencesResponse, Refusal> {
        let bad = || Refusal::invalid(format!("invalid cursor: {}", cursor.unwrap_or_default()));
        let after: Option<OccurrenceCursor> =
            cursor.map(|text| serde_json::from_str(text).map_err(|_| bad())).transpose()?;
        let (term, limit) = (Term::new(term), page_rows(limit));
        let mut found: Vec<(OccurrenceCursor, ThreadSearchOccurrence)> = Vec::new();
        let mut passed = after.is_none();
        self.each_turn(id, after.as_ref().map(|after| after.turn_id.as_str()), SortDirection::Asc, |_, turn| {
            for (place, occurrence) in of_turn(&turn, &term) {
                if passed {
                    found.push((place, occurrence));
                } else {
                    passed = Some(&place) == after.as_ref();
                }
            }
            found.len() <= limit
        })
        .await?;
        if !passed {
            return Err(bad());
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).and_then(|(place, _)| serde_json::to_string(place).ok());
        let data = found.into_iter().map(|(_, occurrence)| occurrence).collect();
        Ok(ThreadSearchOccurrencesResponse { data, next_cursor: next })
    }

    /// Items of a turn by their ids, in the order of the thread.
    pub async fn items_of_turn(
        &self,
        id: ThreadId,
        turn_id: &str,
        item_ids: &[String],
    ) -> Result<Vec<ThreadItemEntry>, Refusal> {
        let mut wanted: HashSet<&str> = item_ids.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        self.each_turn(id, Some(turn_id), SortDirection::Asc, |_, turn| {
            // Turns with the same id are adjacent.
            if turn.id != turn_id {
                return false;
            }
            let items = turn.items.into_iter().filter(|item| wanted.remove(item.id()));
            found.extend(items.map(|item| ThreadItemEntry {
                turn_id: turn.id.clone(),
                item,
                started_at_ms: None,
                completed_at_ms: None,
            }));
            !wanted.is_empty()
        })
        .await?;
        Ok(found)
    }
}

/// The hits in a turn.
fn of_turn(turn: &Turn, term: &Term) -> Vec<(OccurrenceCursor, ThreadSearchOccurrence)> {
    let mut found = Vec::new();
    for item in &turn.items {
        let mut number = 0;
        for text in texts(item) {
            for hit in term.find(text) {
                let snippet = Snippet::verbatim(text, hit);
                let place = OccurrenceCursor { turn_id: turn.id.clone(), item_id: item.id().to_owned(), number };
                let occurrence = ThreadSearchOccurrence {
                    turn_id: turn.id.clone(),
                    item_id: item.id().to_owned(),
                    snippet_match_range: ThreadSearchTextRange {
                        start: utf16_units(&snippet.text[..snippet.hit.start]),
                        end: utf16_units(&snippet.text[..snippet.hit.end]),
                    },
                    snippet: snippet.text,
                    turn_cursor: cursor_of_turn(&turn.id),
                };
                found.push((place, occurrence));
                number += 1;
            }
        }
    }
    found
}

/// The texts of a message; none of another item.
fn texts(item: &ThreadItem) -> Vec<&str> {
    match item {
        ThreadItem::UserMessage { content, .. } => {
            let mut texts = Vec::new();
            for input in content {
                if let UserInput::Text { text, .. } = input {
                    texts.push(text.as_str());
                }
            }
            texts
        }
        ThreadItem::AgentMessage { text, .. } => vec![text],
        _ => Vec::new(),
    }
}

fn utf16_units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

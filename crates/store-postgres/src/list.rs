//! `thread/list`: one query, made of the filters that a request has.

use loomd_protocol::SortDirection;
use loomd_store::{Cursor, ListQuery, Page, Result, StoredThread, ThreadId, cwd_spellings};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::database::Database;
use crate::facts::{COLUMNS, TABLES, stored_thread};
use crate::text::{all_storable, storable};

/// A query in the making: its conditions and their parameters.
pub(crate) struct Conditions {
    parts: Vec<String>,
    params: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Conditions {
    /// The conditions of a query for lists, on the tables of `facts.rs`.
    pub fn of(query: &ListQuery) -> Self {
        let mut all = Self { parts: vec!["t.meta IS NOT NULL".into()], params: Vec::new() };
        all.add("t.archived = $", query.archived);
        if query.only.is_none() {
            all.parts.push("t.preview IS NOT NULL".into());
        }
        let kinds: Vec<i16> = query.wanted_kinds().into_iter().map(|kind| kind as i16).collect();
        all.add("t.kind = ANY($)", kinds);
        if let Some(providers) = &query.providers {
            let has_default = providers.contains(&query.default_provider);
            let unrecorded = if has_default { " OR t.provider IS NULL" } else { "" };
            all.add(&format!("(t.provider = ANY($){unrecorded})"), all_storable(providers));
        }
        if let Some(cwds) = &query.cwds {
            let cwds: Vec<String> = cwds.iter().flat_map(|cwd| cwd_spellings(cwd)).collect();
            all.add("t.cwd = ANY($)", all_storable(&cwds));
        }
        if let Some(term) = &query.search {
            let found = "t.id IN (SELECT thread_id FROM loomd.preview WHERE text LIKE $)";
            all.add(found, containing(&storable(term)));
        }
        if let Some(names) = &query.originators {
            all.add("t.originator = ANY($)", all_storable(names));
        }
        if !query.excluded.is_empty() {
            all.add("t.id <> ALL($)", uuids(&query.excluded));
        }
        if let Some(only) = &query.only {
            all.add("t.id = ANY($)", uuids(only));
        }
        if let Some(parent) = query.parent {
            all.add("t.parent_id = $", *parent.as_uuid());
        }
        if let Some(ancestor) = query.ancestor {
            // UNION, not UNION ALL: a cycle ends.
            let below = "t.id IN (WITH RECURSIVE below AS (
                SELECT id FROM loomd.thread WHERE parent_id = $
                UNION SELECT c.id FROM loomd.thread c JOIN below b ON c.parent_id = b.id) SELECT id FROM below)";
            all.add(below, *ancestor.as_uuid());
        }
        if let Some(attached) = query.attached_to {
            all.add("t.attached_to = $", *attached.as_uuid());
        }
        if let Some(after) = query.after {
            let strict = if query.direction == SortDirection::Desc { "<" } else { ">" };
            let equal = if after.inclusive { "=" } else { "" };
            all.params.push(Box::new(after.at));
            let at = all.params.len();
            all.add(&format!("({}, t.id) {strict}{equal} (${at}, $)", order(query)), *after.id.as_uuid());
        }
        all
    }

    /// Adds a condition with a parameter, whose place in it is the last `$` without a number.
    pub fn add(&mut self, condition: &str, param: impl ToSql + Sync + Send + 'static) {
        self.params.push(Box::new(param));
        let number = self.params.len().to_string();
        let mut text = String::new();
        let mut characters = condition.chars().peekable();
        while let Some(character) = characters.next() {
            text.push(character);
            if character == '$' && !characters.peek().is_some_and(char::is_ascii_digit) {
                text.push_str(&number);
            }
        }
        self.parts.push(text);
    }

    /// The whole query, in the order of the list, with at most `limit` rows.
    pub fn select(&self, query: &ListQuery, more_columns: &str, limit: usize) -> String {
        let way = if query.direction == SortDirection::Desc { "DESC" } else { "ASC" };
        let order = order(query);
        let conditions = self.parts.join(" AND ");
        format!(
            "SELECT {COLUMNS}{more_columns} FROM {TABLES} WHERE {conditions} ORDER BY {order} {way}, t.id {way} LIMIT {limit}"
        )
    }

    pub fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect()
    }
}

/// The pattern of texts that have a term in them.
fn containing(term: &str) -> String {
    let mut pattern = String::from("%");
    for character in term.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}

fn order(query: &ListQuery) -> &'static str {
    if query.by_creation() { "t.created_ns" } else { "t.updated_ns" }
}

/// The place of a thread in a list.
pub(crate) fn cursor(thread: &StoredThread, query: &ListQuery) -> Cursor {
    match query.by_creation() {
        true => Cursor::of_seconds(thread.created_at(), thread.id()),
        false => Cursor { at: thread.updated_ns, id: thread.id(), inclusive: false },
    }
}

fn uuids(ids: &[ThreadId]) -> Vec<Uuid> {
    ids.iter().map(|id| *id.as_uuid()).collect()
}

/// The plan of the statement that [`list`] runs.
pub(crate) async fn explain(database: &Database, query: &ListQuery) -> Result<String> {
    let conditions = Conditions::of(query);
    let client = database.client().await?;
    let statement = format!("EXPLAIN {}", conditions.select(query, "", query.limit.saturating_add(1)));
    let rows = client.query(&statement, &conditions.params()).await.map_err(|error| database.place.query(&error))?;
    Ok(rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect())
}

/// One page of threads.
pub(crate) async fn list(database: &Database, query: &ListQuery) -> Result<Page> {
    let conditions = Conditions::of(query);
    let client = database.client().await?;
    let failed = |error: tokio_postgres::Error| database.place.query(&error);
    let statement = conditions.select(query, "", query.limit.saturating_add(1));
    let rows = client.query(&statement, &conditions.params()).await.map_err(failed)?;
    drop(client);
    let more = rows.len() > query.limit;
    let mut page = Page::default();
    for row in rows.iter().take(query.limit) {
        match stored_thread(&database.place, row) {
            Ok(thread) => page.threads.push(thread),
            Err(error) => {
                tracing::warn!(%error, "a thread cannot be listed");
                page.unreadable += 1;
            }
        }
    }
    page.next = page.threads.last().filter(|_| more).map(|last| cursor(last, query));
    page.back = page.threads.first().map(|first| cursor(first, query).reversed());
    Ok(page)
}

//! The two properties of threads that have few values, source and provider, as one number per pair. All
//! threads of a pair stand side by side in the index, so that a filter goes straight to those it wants.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::error::Result;
use crate::list::{Kind, ListQuery};

/// The number of a pair, given out when it is first met. Two processes may number a pair at once; both
/// numbers then stand for it.
pub(super) fn of(db: &Connection, kind: Kind, provider: Option<&str>) -> Result<i64> {
    let known = db
        .prepare_cached("SELECT facet FROM facets WHERE kind = ?1 AND provider IS ?2")?
        .query_row(params![kind as u8, provider], |row| row.get(0))
        .optional()?;
    if let Some(facet) = known {
        return Ok(facet);
    }
    db.prepare_cached("INSERT INTO facets (kind, provider) VALUES (?1, ?2)")?.execute(params![kind as u8, provider])?;
    Ok(db.last_insert_rowid())
}

/// The numbers of every pair that a query wants.
pub(super) fn wanted(db: &Connection, query: &ListQuery) -> Result<Vec<i64>> {
    let kinds = query.wanted_kinds().into_iter().fold(0, |set, kind| set | 1 << kind as i64);
    let mut values = vec![Value::Integer(kinds)];
    let mut sql = "SELECT facet FROM facets WHERE (? >> kind) & 1".to_owned();
    if let Some(providers) = &query.providers {
        let unrecorded = if providers.contains(&query.default_provider) { " OR provider IS NULL" } else { "" };
        let marks = vec!["?"; providers.len()].join(", ");
        sql.push_str(&format!(" AND (provider IN ({marks}){unrecorded})"));
        values.extend(providers.iter().cloned().map(Value::Text));
    }
    numbers(db, &sql, values)
}

/// The numbers of all pairs.
pub(super) fn all(db: &Connection) -> Result<Vec<i64>> {
    numbers(db, "SELECT facet FROM facets", Vec::new())
}

fn numbers(db: &Connection, sql: &str, values: Vec<Value>) -> Result<Vec<i64>> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

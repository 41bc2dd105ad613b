//! `thread/list` as one query. Every filter and the place to go on from are conditions that an index
//! answers: one ordered range per source, provider and working directory of the query, of which no
//! more than a page is read, and the page is the newest of all.

use loomd_protocol::ThreadSortKey;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Result;
use super::row::{ROW_STATE, RowState, THREAD, ThreadRow};
use super::{facet, signature};
use crate::list::{ListQuery, cwd_spellings};

/// SQLite takes up to 500 parts. A query for more is answered by sorting all that match.
const MAX_RANGES: usize = 400;

/// The rows of a page, and one more when there are more.
pub(super) fn page(db: &Connection, query: &ListQuery) -> Result<Vec<ThreadRow>> {
    let facets = facet::wanted(db, query)?;
    let cwds = query.cwds.as_ref().map(|cwds| cwds.iter().flat_map(|cwd| cwd_spellings(cwd)).collect::<Vec<_>>());
    let ranges = match &cwds {
        None => facets.into_iter().map(|facet| Range { facet, cwd: None }).collect(),
        Some(cwds) => facets
            .into_iter()
            .flat_map(|facet| cwds.iter().map(move |cwd| Range { facet, cwd: Some(cwd) }))
            .collect::<Vec<_>>(),
    };
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values) = build(query, &ranges, query.limit + 1, THREAD);
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), ThreadRow::read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The last changed threads of all.
pub(super) fn recent(db: &Connection, archived: bool, count: usize) -> Result<Vec<RowState>> {
    let ranges: Vec<_> = facet::all(db)?.into_iter().map(|facet| Range { facet, cwd: None }).collect();
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let query = ListQuery { sort: ThreadSortKey::UpdatedAt, archived, ..ListQuery::new("") };
    let (sql, values) = build(&query, &ranges, count, ROW_STATE);
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), RowState::read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Threads that stand side by side in an index, in order.
struct Range<'a> {
    facet: i64,
    cwd: Option<&'a str>,
}

fn build(query: &ListQuery, ranges: &[Range], count: usize, columns: &str) -> (String, Vec<Value>) {
    let time = match query.sort {
        ThreadSortKey::CreatedAt => "created_at",
        ThreadSortKey::UpdatedAt => "updated_at",
    };
    let mut values = Vec::new();
    let index = match (query.cwds.is_some(), query.sort) {
        (false, ThreadSortKey::CreatedAt) => "by_created",
        (false, ThreadSortKey::UpdatedAt) => "by_updated",
        (true, ThreadSortKey::CreatedAt) => "by_cwd_created",
        (true, ThreadSortKey::UpdatedAt) => "by_cwd_updated",
    };
    let order = format!("ORDER BY {time} DESC, id DESC");
    if ranges.len() == 1 || ranges.len() > MAX_RANGES {
        let index = if ranges.len() == 1 { format!("INDEXED BY {index}") } else { String::new() };
        let wanted: Vec<_> = ranges.iter().map(|range| one(query, range, time, &mut values)).collect();
        values.push(Value::Integer(count as i64));
        let wanted = wanted.join(" OR ");
        return (format!("SELECT {columns} FROM rollouts {index} WHERE {wanted} {order} LIMIT ?"), values);
    }
    let mut newest = |range| {
        let wanted = one(query, range, time, &mut values);
        values.push(Value::Integer(count as i64));
        format!(
            "SELECT * FROM (SELECT key, {time} AS at, id FROM rollouts INDEXED BY {index} WHERE {wanted} {order} LIMIT ?)"
        )
    };
    let ranges: Vec<_> = ranges.iter().map(&mut newest).collect();
    values.push(Value::Integer(count as i64));
    let keys = format!("SELECT key FROM ({}) ORDER BY at DESC, id DESC LIMIT ?", ranges.join(" UNION ALL "));
    // Rows themselves are fetched only for what is on the page.
    (format!("SELECT {columns} FROM rollouts WHERE key IN ({keys}) {order}"), values)
}

/// The conditions of one range.
fn one(query: &ListQuery, range: &Range, time: &str, values: &mut Vec<Value>) -> String {
    let mut wanted = "listed AND archived = ? AND facet = ?".to_owned();
    values.extend([Value::Integer(query.archived.into()), Value::Integer(range.facet)]);
    if let Some(cwd) = range.cwd {
        wanted.push_str(" AND cwd = ?");
        values.push(Value::Text(cwd.to_owned()));
    }
    if let Some(after) = query.after {
        wanted.push_str(&format!(" AND ({time}, id) < (?, ?)"));
        values.extend([Value::Integer(after.at), Value::Blob(after.id.as_uuid().as_bytes().to_vec())]);
    }
    if let Some(term) = &query.search {
        // The one condition that needs the row itself comes after one that does not.
        wanted.push_str(" AND may_hold(signature, ?) AND has_text(preview, ?)");
        values.extend([Value::Blob(signature::pieces(term)), Value::Text(term.clone())]);
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadId;
    use crate::file::index::schema;
    use crate::list::Cursor;

    /// How SQLite goes about a query.
    fn plan(query: &ListQuery, ranges: &[Range]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let db = schema::open(&home.path().join("index")).unwrap();
        let (sql, values) = build(query, ranges, 51, THREAD);
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn every_filter_is_a_range_of_an_index_in_the_order_of_the_page() {
        let after = Some(Cursor { at: 1, id: ThreadId::new() });
        for sort in [ThreadSortKey::CreatedAt, ThreadSortKey::UpdatedAt] {
            for after in [None, after] {
                for cwd in [None, Some("/w")] {
                    for search in [None, Some("term".to_owned())] {
                        let cwds = cwd.map(|cwd: &str| vec![cwd.to_owned()]);
                        let query = ListQuery { sort, after, cwds, search, ..ListQuery::new("mock") };
                        let range = |facet| Range { facet, cwd };
                        let steps = plan(&query, &[range(1)]);
                        let [step] = &steps[..] else { panic!("one step is enough: {steps:?}") };
                        assert!(step.starts_with("SEARCH rollouts USING INDEX by_"), "{step}");
                        // A cursor narrows the range instead of being compared with every row.
                        assert_eq!(step.contains("_at,id)<"), after.is_some(), "{step}");
                        for step in plan(&query, &[range(1), range(2)]) {
                            assert!(!step.starts_with("SCAN rollouts"), "{step}");
                        }
                    }
                }
            }
        }
    }
}

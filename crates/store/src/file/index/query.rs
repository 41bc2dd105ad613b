//! `thread/list` as one query. Every filter and the place to go on from are conditions that an index
//! answers: one ordered range per source, provider and working directory of the query, of which no
//! more than a page is read, and the page is the newest of all.

use loomd_protocol::{SortDirection, ThreadSortKey};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Result;
use super::facet;
use super::row::{ROW_STATE, RowState, THREAD, ThreadRow};
use crate::ThreadId;
use crate::list::{ListQuery, cwd_spellings};
use crate::signature;

/// SQLite takes up to 500 parts. A query for more is answered by sorting all that match.
const MAX_RANGES: usize = 400;

/// The rows of a page, and one more when there are more. [`name_threads`] was called for the query.
pub(super) fn page(db: &Connection, query: &ListQuery) -> Result<Vec<ThreadRow>> {
    page_where(db, query, query.limit + 1, None)
}

/// Notes the threads that a query names, for [`page`].
pub(super) fn name_threads(db: &Connection, query: &ListQuery) -> Result<()> {
    for (table, ids) in [("wanted", query.only.as_deref()), ("excluded", Some(&*query.excluded))] {
        let ids = ids.unwrap_or_default();
        db.prepare_cached(&format!("DELETE FROM temp.{table}"))?.execute([])?;
        let mut insert = db.prepare_cached(&format!("INSERT OR IGNORE INTO temp.{table} (id) VALUES (?1)"))?;
        for id in ids {
            insert.execute([id.as_uuid().as_bytes().as_slice()])?;
        }
    }
    Ok(())
}

/// The first rows of a query for which a condition with one value holds as well.
pub(super) fn page_where(
    db: &Connection,
    query: &ListQuery,
    count: usize,
    condition: Option<(&str, i64)>,
) -> Result<Vec<ThreadRow>> {
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
    let (sql, values) = build(query, &ranges, count, THREAD, condition);
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
    let (sql, values) = build(&query, &ranges, count, ROW_STATE, None);
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), RowState::read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Threads that stand side by side in an index, in order.
struct Range<'a> {
    facet: i64,
    cwd: Option<&'a str>,
}

fn build(
    query: &ListQuery,
    ranges: &[Range],
    count: usize,
    columns: &str,
    condition: Option<(&str, i64)>,
) -> (String, Vec<Value>) {
    let time = if query.by_creation() { "created_at" } else { "mtime" };
    let way = if query.direction == SortDirection::Desc { "DESC" } else { "ASC" };
    let mut values = Vec::new();
    let index = match (query.cwds.is_some(), query.by_creation()) {
        (false, true) => "by_created",
        (false, false) => "by_updated",
        (true, true) => "by_cwd_created",
        (true, false) => "by_cwd_updated",
    };
    let order = format!("ORDER BY {time} {way}, id {way}");
    // Threads that are named are found by their ids, or their parent's, and sorted.
    let free = query.is_narrow() || ranges.len() > MAX_RANGES;
    if ranges.len() == 1 || free {
        let index = if free { String::new() } else { format!("INDEXED BY {index}") };
        let wanted: Vec<_> = ranges.iter().map(|range| one(query, range, time, condition, &mut values)).collect();
        values.push(Value::Integer(count as i64));
        let wanted = wanted.join(" OR ");
        return (format!("SELECT {columns} FROM rollouts {index} WHERE {wanted} {order} LIMIT ?"), values);
    }
    let mut newest = |range| {
        let wanted = one(query, range, time, condition, &mut values);
        values.push(Value::Integer(count as i64));
        format!(
            "SELECT * FROM (SELECT key, {time} AS at, id FROM rollouts INDEXED BY {index} WHERE {wanted} {order} LIMIT ?)"
        )
    };
    let ranges: Vec<_> = ranges.iter().map(&mut newest).collect();
    values.push(Value::Integer(count as i64));
    let keys = format!("SELECT key FROM ({}) ORDER BY at {way}, id {way} LIMIT ?", ranges.join(" UNION ALL "));
    // Rows themselves are fetched only for what is on the page.
    (format!("SELECT {columns} FROM rollouts WHERE key IN ({keys}) {order}"), values)
}

/// The threads of agents below one, at every depth.
const DESCENDANTS: &str = "id IN (WITH RECURSIVE below (id) AS (SELECT id FROM rollouts WHERE parent = ? UNION SELECT child.id FROM rollouts AS child JOIN below ON child.parent = below.id) SELECT id FROM below)";

/// The conditions of one range.
fn one(
    query: &ListQuery,
    range: &Range,
    time: &str,
    condition: Option<(&str, i64)>,
    values: &mut Vec<Value>,
) -> String {
    let shown = if query.only.is_some() { "(listed OR meta LIKE '{%')" } else { "listed" };
    let mut wanted = format!("{shown} AND archived = ? AND facet = ?");
    values.extend([Value::Integer(query.archived.into()), Value::Integer(range.facet)]);
    if let Some(cwd) = range.cwd {
        wanted.push_str(" AND cwd = ?");
        values.push(Value::Text(cwd.to_owned()));
    }
    if let Some(after) = query.after {
        let sign = match (query.direction, after.inclusive) {
            (SortDirection::Desc, false) => "<",
            (SortDirection::Desc, true) => "<=",
            (SortDirection::Asc, false) => ">",
            (SortDirection::Asc, true) => ">=",
        };
        wanted.push_str(&format!(" AND ({time}, id) {sign} (?, ?)"));
        let at = if query.by_creation() { after.seconds() } else { after.at };
        values.extend([Value::Integer(at), blob(after.id)]);
    }
    if query.only.is_some() {
        wanted.push_str(" AND id IN (SELECT id FROM temp.wanted)");
    }
    if !query.excluded.is_empty() {
        wanted.push_str(" AND id NOT IN (SELECT id FROM temp.excluded)");
    }
    if let Some(parent) = query.parent {
        wanted.push_str(" AND parent = ?");
        values.push(blob(parent));
    }
    if let Some(ancestor) = query.ancestor {
        wanted.push_str(&format!(" AND {DESCENDANTS}"));
        values.push(blob(ancestor));
    }
    if let Some(thread) = query.attached_to {
        wanted.push_str(" AND attached_to = ?");
        values.push(blob(thread));
    }
    if let Some(names) = &query.originators {
        wanted.push_str(&format!(" AND originator IN ({})", vec!["?"; names.len()].join(", ")));
        values.extend(names.iter().cloned().map(Value::Text));
    }
    if let Some((condition, value)) = condition {
        wanted.push_str(&format!(" AND {condition}"));
        values.push(Value::Integer(value));
    }
    if let Some(term) = &query.search {
        // The one condition that needs the row itself comes after one that does not.
        wanted.push_str(" AND may_hold(signature, ?) AND has_text(preview, ?)");
        values.extend([Value::Blob(signature::pieces(term)), Value::Text(term.clone())]);
    }
    wanted
}

fn blob(id: ThreadId) -> Value {
    Value::Blob(id.as_uuid().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::index::schema;
    use crate::list::Cursor;

    /// How SQLite goes about a query.
    fn plan(query: &ListQuery, ranges: &[Range]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let db = schema::open(&home.path().join("index")).unwrap();
        let (sql, values) = build(query, ranges, 51, THREAD, None);
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn named_threads_and_relatives_are_found_without_a_scan() {
        let id = ThreadId::new();
        let range = Range { facet: 1, cwd: None };
        for query in [
            ListQuery { parent: Some(id), ..ListQuery::new("mock") },
            ListQuery { ancestor: Some(id), ..ListQuery::new("mock") },
            ListQuery { attached_to: Some(id), ..ListQuery::new("mock") },
            ListQuery { only: Some(vec![id]), ..ListQuery::new("mock") },
        ] {
            for step in plan(&query, std::slice::from_ref(&range)) {
                assert!(!step.starts_with("SCAN rollouts"), "{step}");
            }
        }
    }

    #[test]
    fn every_filter_is_a_range_of_an_index_in_the_order_of_the_page() {
        let after = Some(Cursor { at: 1, id: ThreadId::new(), inclusive: false });
        let ways = [SortDirection::Desc, SortDirection::Asc];
        let orders = [ThreadSortKey::CreatedAt, ThreadSortKey::UpdatedAt];
        for (sort, direction) in orders.into_iter().flat_map(|sort| ways.map(|way| (sort, way))) {
            for after in [None, after] {
                for cwd in [None, Some("/w")] {
                    for search in [None, Some("term".to_owned())] {
                        let cwds = cwd.map(|cwd: &str| vec![cwd.to_owned()]);
                        let query = ListQuery { sort, direction, after, cwds, search, ..ListQuery::new("mock") };
                        let range = |facet| Range { facet, cwd };
                        let steps = plan(&query, &[range(1)]);
                        let [step] = &steps[..] else { panic!("one step is enough: {steps:?}") };
                        assert!(step.starts_with("SEARCH rollouts USING INDEX by_"), "{step}");
                        // A cursor narrows the range instead of being compared with every row.
                        let sign = if direction == SortDirection::Desc { "<" } else { ">" };
                        assert_eq!(step.contains(&format!(",id){sign}")), after.is_some(), "{step}");
                        for step in plan(&query, &[range(1), range(2)]) {
                            assert!(!step.starts_with("SCAN rollouts"), "{step}");
                        }
                    }
                }
            }
        }
    }
}

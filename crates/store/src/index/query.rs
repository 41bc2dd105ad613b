//! `thread/list` as one query: every filter and the place to go on from are in its conditions, and an
//! index gives the order.

use std::path::Path;

use loomd_protocol::ThreadSortKey;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::row::{THREAD, ThreadRow};
use super::signature;
use crate::error::Result;
use crate::list::{Kind, ListQuery};

/// The rows of a page, and one more when there are more.
pub(super) fn page(db: &Connection, query: &ListQuery) -> Result<Vec<ThreadRow>> {
    let (sql, values) = build(query);
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), ThreadRow::read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn build(query: &ListQuery) -> (String, Vec<Value>) {
    let time = match query.sort {
        ThreadSortKey::CreatedAt => "created_at",
        ThreadSortKey::UpdatedAt => "updated_at",
    };
    let mut values = vec![Value::Integer(query.archived.into())];
    let mut wanted = vec!["listed AND archived = ?".to_owned()];
    if let Some(after) = query.after {
        wanted.push(format!("({time}, id) < (?, ?)"));
        values.extend([Value::Integer(after.at), Value::Blob(after.id.as_uuid().as_bytes().to_vec())]);
    }
    // A set of small numbers in one: cheaper per row than a list.
    wanted.push("(? >> kind) & 1".into());
    let kinds = Kind::asked(query.kinds.as_deref());
    values.push(Value::Integer(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as i64)));
    if let Some(providers) = &query.providers {
        let unrecorded = if providers.contains(&query.default_provider) { " OR provider IS NULL" } else { "" };
        wanted.push(format!("(provider IN ({}){unrecorded})", marks(providers.len())));
        values.extend(providers.iter().cloned().map(Value::Text));
    }
    if let Some(cwds) = &query.cwds {
        let spellings: Vec<_> = cwds.iter().flat_map(|cwd| spellings(cwd)).collect();
        wanted.push(format!("cwd IN ({})", marks(spellings.len())));
        values.extend(spellings.into_iter().map(Value::Text));
    }
    let mut index = "";
    if let Some(term) = &query.search {
        if query.cwds.is_none() {
            // The one filter that needs the row itself is asked after one that does not.
            index = match query.sort {
                ThreadSortKey::CreatedAt => "INDEXED BY search_created",
                ThreadSortKey::UpdatedAt => "INDEXED BY search_updated",
            };
        }
        wanted.push("may_hold(signature, ?) AND has_text(preview, ?)".into());
        values.extend([Value::Blob(signature::pieces(term)), Value::Text(term.clone())]);
    }
    values.push(Value::Integer(query.limit as i64 + 1));
    let wanted = wanted.join(" AND ");
    (format!("SELECT {THREAD} FROM rollouts {index} WHERE {wanted} ORDER BY {time} DESC, id DESC LIMIT ?"), values)
}

/// The folder as it was asked for and, when that differs, without links: threads record either.
fn spellings(cwd: &str) -> Vec<String> {
    let mut found = vec![cwd.to_owned()];
    if let Some(resolved) = Path::new(cwd).canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok())
        && resolved != cwd
    {
        found.push(resolved);
    }
    found
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

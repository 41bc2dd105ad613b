//! Cursors of lists: the query and the last row, as an opaque text. A cursor of another query is refused.

use serde_json::Value;

use crate::error::{Error, Result};

/// Rows without a limit, and at most.
const DEFAULT_ROWS: u32 = 25;
const MAX_ROWS: u32 = 100;

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub next: Option<String>,
}

pub(crate) fn limit(limit: Option<u32>) -> usize {
    limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS) as usize
}

/// The text for the row at `place` of the query `query`.
pub(crate) fn encode(query: &Value, place: Value) -> String {
    Value::Array(vec![query.clone(), place]).to_string()
}

/// The place in a cursor that `encode` made for the same query.
pub(crate) fn decode(query: &Value, cursor: &str) -> Result<Value> {
    match serde_json::from_str(cursor) {
        Ok(Value::Array(parts)) if parts.len() == 2 && parts[0] == *query => parts.into_iter().nth(1).ok_or_else(bad),
        _ => Err(bad()),
    }
}

pub(crate) fn bad() -> Error {
    Error::invalid("invalid pagination cursor")
}

/// Cuts rows, of which there may be one more than the page takes, to a page.
pub(crate) fn page<T>(mut rows: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Page<T> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(cursor);
    Page { rows, next }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_of_another_query_is_refused() {
        let cursor = encode(&json!(["a", 1]), json!(7));
        assert_eq!(decode(&json!(["a", 1]), &cursor).unwrap(), json!(7));
        for (query, text) in [(json!(["a", 2]), cursor.as_str()), (json!(["a", 1]), "bad"), (json!(["a", 1]), "[]")] {
            assert!(matches!(decode(&query, text), Err(Error::Invalid(_))), "{text}");
        }
    }
}

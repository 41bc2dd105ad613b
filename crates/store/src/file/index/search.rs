//! The candidates of a search: threads whose filter does not rule the term out, and those without a filter.

use std::path::PathBuf;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::error::Result;
use super::row::FileStamp;
use super::{Index, cursor, query, row, skip_unreadable, time};
use crate::StoredThread;
use crate::list::{Cursor, ListQuery};
use crate::search::pieces;

/// A thread that may hold the term.
pub(crate) struct Candidate {
    pub key: i64,
    pub path: PathBuf,
    /// The state of the file before it is read.
    pub stamp: FileStamp,
    /// Whether its filter is up to date.
    pub searched: bool,
    pub place: Cursor,
    pub thread: StoredThread,
}

/// The filter of a rollout in a certain state.
pub(crate) struct NewFilter {
    pub key: i64,
    pub stamp: FileStamp,
    pub filter: Vec<u8>,
}

impl Index {
    /// Notes the candidates of a search. Returns its number, for [`Index::candidates`].
    pub(crate) fn begin_search(&mut self, query: &ListQuery, term: &str) -> Result<i64> {
        self.check_folders()?;
        self.check_unlisted(query.archived)?;
        self.check_recent(query.archived)?;
        self.complete()?;
        self.searches += 1;
        let sql = "INSERT OR IGNORE INTO temp.candidates (search, key)
             SELECT ?1, key FROM message_filters WHERE may_hold(filter, ?2)
             UNION ALL SELECT ?1, key FROM rollouts INDEXED BY unsearched WHERE listed AND NOT searched AND archived = ?3";
        self.db.prepare_cached(sql)?.execute(params![self.searches, pieces(term), query.archived])?;
        Ok(self.searches)
    }

    pub(crate) fn end_search(&mut self, search: i64) -> Result<()> {
        self.db.prepare_cached("DELETE FROM temp.candidates WHERE search = ?1")?.execute([search])?;
        Ok(())
    }

    /// The next candidates in the order of the query, at most as many as its limit.
    pub(crate) fn candidates(&mut self, search: i64, query: &ListQuery) -> Result<Vec<Candidate>> {
        query::name_threads(&self.db, query)?;
        let condition = ("key IN (SELECT key FROM temp.candidates WHERE search = ?)", search);
        let rows = query::page_where(&self.db, query, query.limit, Some(condition))?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let place_time = time(&row, query);
            let changed = skip_unreadable(row::verify(&self.db, &self.home, &row.entry))?;
            let row = match changed {
                false => row,
                true => match row::by_key(&self.db, row.entry.key)?.filter(|row| row.entry.listed) {
                    Some(row) => row,
                    None => continue,
                },
            };
            let searched: bool = self
                .db
                .prepare_cached("SELECT searched FROM rollouts WHERE key = ?1")?
                .query_row([row.entry.key], |row| row.get(0))?;
            let (key, stamp) = (row.entry.key, row.entry.stamp);
            let thread = row.into_thread(&self.home)?;
            found.push(Candidate {
                key,
                path: thread.path.clone().unwrap_or_default(),
                stamp,
                searched,
                place: cursor(place_time, thread.id(), query),
                thread,
            });
        }
        Ok(found)
    }

    /// Keeps filters of rollouts that have not changed since.
    pub(crate) fn keep_filters(&mut self, filters: &[NewFilter]) -> Result<()> {
        if filters.is_empty() {
            return Ok(());
        }
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        let mut mark = transaction
            .prepare_cached("UPDATE rollouts SET searched = 1 WHERE key = ?1 AND size = ?2 AND mtime = ?3")?;
        let mut keep = transaction.prepare_cached(
            "INSERT INTO message_filters (key, filter) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET filter = ?2",
        )?;
        for NewFilter { key, stamp, filter } in filters {
            if mark.execute(params![key, stamp.size as i64, stamp.mtime])? > 0 {
                keep.execute(params![key, filter])?;
            }
        }
        drop((mark, keep));
        Ok(transaction.commit()?)
    }
}

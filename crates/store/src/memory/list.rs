//! `thread/list` by a look at every thread.

use std::cmp::Reverse;

use loomd_protocol::ThreadSortKey;

use super::Content;
use crate::list::{Cursor, Kind, ListQuery, Page, cwd_spellings};
use crate::{StoredThread, ThreadId};

impl Content {
    pub(super) fn list(&self, query: &ListQuery) -> Page {
        let kinds = Kind::of_query(query.kinds.as_deref());
        let cwds: Option<Vec<String>> =
            query.cwds.as_ref().map(|cwds| cwds.iter().flat_map(|cwd| cwd_spellings(cwd)).collect());
        let wanted = |thread: &StoredThread| {
            let provider = thread.meta.model_provider.as_ref().unwrap_or(&query.default_provider);
            let preview = thread.preview.as_deref();
            thread.archived == query.archived
                && kinds.contains(&Kind::of(&thread.meta.source))
                && query.providers.as_ref().is_none_or(|providers| providers.contains(provider))
                && cwds.as_ref().is_none_or(|cwds| cwds.contains(&thread.meta.cwd))
                && preview.is_some_and(|preview| query.search.as_ref().is_none_or(|term| preview.contains(term)))
                && query.after.is_none_or(|after| key(thread, query.sort) < (after.at, after.id))
        };
        let mut threads: Vec<StoredThread> =
            self.threads.iter().filter_map(|(id, log)| self.describe(*id, log).ok()).filter(wanted).collect();
        threads.sort_by_key(|thread| Reverse(key(thread, query.sort)));
        let more = threads.len() > query.limit;
        threads.truncate(query.limit);
        let last = threads.last().filter(|_| more).map(|thread| key(thread, query.sort));
        Page { threads, next: last.map(|(at, id)| Cursor { at, id }), unreadable: 0 }
    }
}

/// The place of a thread in a list.
fn key(thread: &StoredThread, sort: ThreadSortKey) -> (i64, ThreadId) {
    let at = match sort {
        ThreadSortKey::CreatedAt => thread.created_at(),
        ThreadSortKey::UpdatedAt => thread.updated_at,
    };
    (at, thread.id())
}

//! `thread/list` and `thread/search` by a look at every thread.

use std::cmp::Ordering;
use std::collections::HashSet;

use loomd_protocol::SortDirection;

use super::Content;
use crate::list::{Cursor, Kind, ListQuery, Page, cwd_spellings};
use crate::search::{Hit, MessageTexts, SearchPage, SearchQuery, Term};
use crate::{StoredThread, ThreadId};

impl Content {
    pub(super) fn list(&self, query: &ListQuery) -> Page {
        let mut threads = self.matching(query);
        let more = threads.len() > query.limit;
        threads.truncate(query.limit);
        let place = |thread: &StoredThread| cursor(thread, query);
        Page {
            next: threads.last().filter(|_| more).map(place),
            back: threads.first().map(place).map(Cursor::reversed),
            threads,
            unreadable: 0,
        }
    }

    pub(super) fn search(&self, query: &SearchQuery) -> SearchPage {
        let term = Term::new(&query.term);
        let hit = |thread: StoredThread| {
            let mut texts = MessageTexts::new(&term);
            for record in self.threads.get(&thread.id()).into_iter().flat_map(|log| &log.records) {
                texts.push(record);
            }
            texts.first().map(|snippet| Hit { thread, snippet })
        };
        let mut hits: Vec<Hit> = self.matching(&query.list).into_iter().filter_map(hit).collect();
        let more = hits.len() > query.list.limit;
        hits.truncate(query.list.limit);
        let place = |hit: &Hit| cursor(&hit.thread, &query.list);
        SearchPage {
            next: hits.last().filter(|_| more).map(place),
            back: hits.first().map(place).map(Cursor::reversed),
            hits,
        }
    }

    /// All threads that a query wants from its cursor on, in its order.
    fn matching(&self, query: &ListQuery) -> Vec<StoredThread> {
        let kinds = query.wanted_kinds();
        let cwds: Option<Vec<String>> =
            query.cwds.as_ref().map(|cwds| cwds.iter().flat_map(|cwd| cwd_spellings(cwd)).collect());
        let below = query.ancestor.map(|ancestor| self.descendants(ancestor));
        let wanted = |thread: &StoredThread| {
            let provider = thread.meta.model_provider.as_ref().unwrap_or(&query.default_provider);
            let has_text = |term: &String| thread.preview.as_ref().is_some_and(|preview| preview.contains(term));
            thread.archived == query.archived
                && (thread.preview.is_some() || query.only.is_some())
                && kinds.contains(&Kind::of(&thread.meta.source))
                && query.providers.as_ref().is_none_or(|providers| providers.contains(provider))
                && cwds.as_ref().is_none_or(|cwds| cwds.contains(&thread.meta.cwd))
                && query.search.as_ref().is_none_or(has_text)
                && query.originators.as_ref().is_none_or(|names| names.contains(&thread.meta.originator))
                && !query.excluded.contains(&thread.id())
                && query.only.as_ref().is_none_or(|only| only.contains(&thread.id()))
                && query.parent.is_none_or(|wanted| thread.meta.parent() == Some(wanted))
                && below.as_ref().is_none_or(|below| below.contains(&thread.id()))
                && query.attached_to.is_none_or(|wanted| thread.meta.attached_to == Some(wanted))
                && query.after.is_none_or(|after| match order(thread, &after, query) {
                    Ordering::Less => false,
                    Ordering::Equal => after.inclusive,
                    Ordering::Greater => true,
                })
        };
        let all = self.threads.iter().filter_map(|(id, log)| self.describe(*id, log).ok());
        let mut threads: Vec<StoredThread> = all.filter(wanted).collect();
        threads.sort_by(|a, b| order(a, &cursor(b, query), query));
        threads
    }

    fn descendants(&self, ancestor: ThreadId) -> HashSet<ThreadId> {
        let all: Vec<StoredThread> = self.threads.iter().filter_map(|(id, log)| self.describe(*id, log).ok()).collect();
        let (mut found, mut open) = (HashSet::new(), vec![ancestor]);
        while let Some(above) = open.pop() {
            let children = all.iter().filter(|thread| thread.meta.parent() == Some(above)).map(StoredThread::id);
            open.extend(children.filter(|child| found.insert(*child)));
        }
        found
    }
}

/// The place of a thread in a list.
fn cursor(thread: &StoredThread, query: &ListQuery) -> Cursor {
    match query.by_creation() {
        true => Cursor::of_seconds(thread.created_at(), thread.id()),
        false => Cursor { at: thread.updated_ns, id: thread.id(), inclusive: false },
    }
}

/// Whether a thread stands before or behind a place.
fn order(thread: &StoredThread, place: &Cursor, query: &ListQuery) -> Ordering {
    let own = cursor(thread, query);
    let order = (own.at, own.id).cmp(&(place.at, place.id));
    if query.direction == SortDirection::Desc { order.reverse() } else { order }
}

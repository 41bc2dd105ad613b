//! `thread/search` over the rollouts of a home. The index holds a filter of the messages of each thread, which rules out
//! most threads that do not hold a term; the rollouts of the others are read. A filter is made when a search reads a
//! rollout, and counts until the rollout changes.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::index::{Candidate, NewFilter};
use super::{Inner, descriptors};
use crate::error::{Error, Result};
use crate::list::{Cursor, ListQuery};
use crate::search::{Hit, MessageFilter, MessageTexts, SearchPage, SearchQuery, Term};

/// Threads that are read between two looks at the index.
const BATCH: usize = 64;
const BUFFER: usize = 256 * 1024;

/// Ends a search when its caller is gone.
#[derive(Clone, Default)]
pub(super) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Inner {
    /// Reads rollouts in the order of the query until a page is full. The index is not held while they are read.
    pub(super) fn search(self: &Arc<Self>, query: &SearchQuery, cancel: &Cancel) -> Result<SearchPage> {
        let term = Term::new(&query.term);
        let search = self.with_index(|index| index.begin_search(&query.list, term.folded()))?;
        let found = self.find_hits(search, &query.list, &term, cancel);
        // What is left of it is only in memory.
        _ = self.with_index(|index| index.end_search(search));
        let (mut hits, mut places) = found?;
        let more = hits.len() > query.list.limit;
        hits.truncate(query.list.limit);
        places.truncate(query.list.limit);
        let mut threads: Vec<_> = hits.iter().map(|hit| hit.thread.clone()).collect();
        // Fetched with the lists' own functions, so that both show the same.
        self.with_index(|index| {
            let mut named = threads.clone();
            index.add_names(&mut named)?;
            Ok(named)
        })
        .map(|named| threads = named)?;
        self.git.lock().fill(&mut threads)?;
        for (hit, thread) in hits.iter_mut().zip(threads) {
            hit.thread = thread;
        }
        Ok(SearchPage {
            next: places.last().copied().filter(|_| more),
            back: places.first().map(|first| first.reversed()),
            hits,
        })
    }

    /// One hit more than a page takes, when there are more.
    fn find_hits(
        &self,
        search: i64,
        list: &ListQuery,
        term: &Term,
        cancel: &Cancel,
    ) -> Result<(Vec<Hit>, Vec<Cursor>)> {
        let (mut hits, mut places) = (Vec::new(), Vec::new());
        let mut after = list.after;
        while hits.len() <= list.limit {
            let query = ListQuery { after, limit: BATCH, ..list.clone() };
            let batch = self.with_index(|index| index.candidates(search, &query))?;
            let Some(last) = batch.last() else { break };
            after = Some(last.place);
            let mut filters = Vec::new();
            for candidate in batch {
                if cancel.is_cancelled() {
                    return Err(Error::Stopped);
                }
                let Some(snippet) = read(&candidate, term, &mut filters) else { continue };
                places.push(candidate.place);
                hits.push(Hit { thread: candidate.thread, snippet });
                if hits.len() > list.limit {
                    break;
                }
            }
            self.with_index(|index| index.keep_filters(&filters))?;
        }
        Ok((hits, places))
    }
}

/// The first hit in a rollout. A rollout that cannot be read has none.
fn read(candidate: &Candidate, term: &Term, filters: &mut Vec<NewFilter>) -> Option<String> {
    let scanned = descriptors::open_file(&candidate.path).and_then(|file| scan(file, term, candidate.searched));
    match scanned {
        Ok((snippet, filter)) => {
            filters.extend(filter.map(|filter| NewFilter { key: candidate.key, stamp: candidate.stamp, filter }));
            snippet
        }
        Err(error) => {
            tracing::debug!(%error, path = %candidate.path.display(), "a rollout cannot be searched");
            None
        }
    }
}

fn scan(file: File, term: &Term, searched: bool) -> io::Result<(Option<String>, Option<Vec<u8>>)> {
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let mut texts = MessageTexts::new(term);
    let mut filter = (!searched).then(MessageFilter::default);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        texts.push_filtered(&line, filter.as_mut());
        line.clear();
    }
    Ok((texts.first(), filter.map(MessageFilter::finish)))
}

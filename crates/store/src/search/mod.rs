//! Searching the messages of threads: `thread/search`. What a user and an agent wrote is searched, as the events of a
//! rollout hold it; reasoning, commands and their output are not.

mod filter;
mod messages;
mod term;

pub use filter::{MessageFilter, pieces};
pub use messages::MessageTexts;
pub use term::{Snippet, Term};

use crate::StoredThread;
use crate::list::{Cursor, ListQuery};

/// A search. `list` says which threads are searched, in which order, and how many are found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuery {
    pub list: ListQuery,
    /// Literal text, in any case.
    pub term: String,
}

/// A thread that holds the term, and the first place where it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub thread: StoredThread,
    /// In one line.
    pub snippet: String,
}

/// One page of hits, in the order of the query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPage {
    pub hits: Vec<Hit>,
    /// `None` when there are no more.
    pub next: Option<Cursor>,
    /// Begins a page in the opposite direction with the first thread of this one.
    pub back: Option<Cursor>,
}

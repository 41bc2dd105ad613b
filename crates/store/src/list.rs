//! Queries for lists of threads, their pages and cursors.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use loomd_protocol::{CwdFilter, SubAgentSource, ThreadListParams, ThreadSortKey, ThreadSourceKind};

use crate::rollout::Source;
use crate::{StoredThread, ThreadId};

/// Rows of a page without a `limit`.
const DEFAULT_LIMIT: u32 = 25;
/// Rows of the largest page.
const MAX_LIMIT: u32 = 100;

/// Which threads to list, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct ListQuery {
    pub sort: ThreadSortKey,
    pub limit: usize,
    /// The last row of the page before.
    pub after: Option<Cursor>,
    pub archived: bool,
    /// `None`: every provider.
    pub providers: Option<Vec<String>>,
    /// Stands for the provider of threads that recorded none.
    pub default_provider: String,
    /// `None`: threads that a person started.
    pub kinds: Option<Vec<ThreadSourceKind>>,
    /// Any of these working directories; `None`: every one.
    pub cwds: Option<Vec<String>>,
    /// A part of the first user message, in its case.
    pub search: Option<String>,
}

/// One page, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub threads: Vec<StoredThread>,
    /// `None` when there are no more.
    pub next: Option<Cursor>,
    /// How many threads could not be read: with any, some may be missing from the list.
    pub unreadable: usize,
}

impl ListQuery {
    /// The first page of what `thread/list` shows by default.
    pub fn new(default_provider: impl Into<String>) -> Self {
        let default_provider = default_provider.into();
        Self {
            sort: ThreadSortKey::CreatedAt,
            limit: DEFAULT_LIMIT as usize,
            after: None,
            archived: false,
            providers: Some(vec![default_provider.clone()]),
            default_provider,
            kinds: None,
            cwds: None,
            search: None,
        }
    }

    /// The query of a `thread/list` request. The error is the cursor that could not be parsed.
    pub fn from_params(params: ThreadListParams, default_provider: &str) -> Result<Self, BadCursor> {
        let query = Self::new(default_provider);
        Ok(Self {
            sort: params.sort_key.unwrap_or(query.sort),
            limit: params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize,
            after: params.cursor.map(|cursor| cursor.parse()).transpose()?,
            archived: params.archived.unwrap_or(false),
            providers: match params.model_providers {
                Some(providers) if providers.is_empty() => None,
                Some(providers) => Some(providers),
                None => query.providers,
            },
            kinds: params.source_kinds.filter(|kinds| !kinds.is_empty()),
            cwds: params
                .cwd
                .map(|cwd| match cwd {
                    CwdFilter::One(cwd) => vec![cwd],
                    CwdFilter::Any(cwds) => cwds,
                })
                .filter(|cwds| !cwds.is_empty()),
            search: params.search_term.filter(|term| !term.is_empty()),
            default_provider: query.default_provider,
        })
    }
}

/// The position of a row: its time in whole seconds, then its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub at: i64,
    pub id: ThreadId,
}

/// A cursor that this server did not give out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: {0}")]
pub struct BadCursor(pub String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Timestamp::from_second(self.at).unwrap_or(Timestamp::MIN);
        write!(f, "{at:.0}|{}", self.id)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let parse = || {
            let (time, id) = text.split_once('|')?;
            let at = match time.parse::<Timestamp>() {
                Ok(time) => time.as_second(),
                // The time as file names spell it.
                Err(_) => DateTime::strptime("%Y-%m-%dT%H-%M-%S", time)
                    .ok()?
                    .to_zoned(TimeZone::UTC)
                    .ok()?
                    .timestamp()
                    .as_second(),
            };
            Some(Self { at, id: id.parse().ok()? })
        };
        parse().ok_or_else(|| BadCursor(text.to_owned()))
    }
}

/// A working directory as the query names it and, when that differs, without links: threads record either.
pub(crate) fn cwd_spellings(cwd: &str) -> Vec<String> {
    let mut found = vec![cwd.to_owned()];
    if let Some(resolved) = Path::new(cwd).canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok())
        && resolved != cwd
    {
        found.push(resolved);
    }
    found
}

/// The groups of sources that a query can name, as the index numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Cli = 0,
    Vscode = 1,
    Exec = 2,
    AppServer = 3,
    /// Products for people that name themselves.
    Known = 4,
    Custom = 5,
    Review = 6,
    Compact = 7,
    ThreadSpawn = 8,
    OtherAgent = 9,
    MemoryConsolidation = 10,
    Unknown = 11,
}

impl Kind {
    /// The groups that are listed when the query names none.
    pub(crate) const INTERACTIVE: [Self; 3] = [Self::Cli, Self::Vscode, Self::Known];
    const SUB_AGENTS: [Self; 5] =
        [Self::Review, Self::Compact, Self::ThreadSpawn, Self::OtherAgent, Self::MemoryConsolidation];

    pub(crate) fn of(source: &Source) -> Self {
        match source {
            Source::Cli => Self::Cli,
            Source::Vscode => Self::Vscode,
            Source::Exec => Self::Exec,
            Source::Mcp => Self::AppServer,
            Source::Custom(name) if name == "atlas" || name == "chatgpt" => Self::Known,
            Source::Custom(_) => Self::Custom,
            Source::SubAgent(SubAgentSource::Review) => Self::Review,
            Source::SubAgent(SubAgentSource::Compact) => Self::Compact,
            Source::SubAgent(SubAgentSource::ThreadSpawn { .. }) => Self::ThreadSpawn,
            Source::SubAgent(SubAgentSource::Other(_)) => Self::OtherAgent,
            Source::SubAgent(SubAgentSource::MemoryConsolidation) => Self::MemoryConsolidation,
            Source::Unknown => Self::Unknown,
        }
    }

    /// The groups that a query names.
    pub(crate) fn of_query(kinds: Option<&[ThreadSourceKind]>) -> Vec<Self> {
        use ThreadSourceKind as Wire;
        let Some(kinds) = kinds else { return Self::INTERACTIVE.to_vec() };
        let one = |kind: &Wire| match kind {
            Wire::Cli => vec![Self::Cli],
            Wire::Vscode => vec![Self::Vscode],
            Wire::Exec => vec![Self::Exec],
            Wire::AppServer => vec![Self::AppServer],
            Wire::SubAgent => Self::SUB_AGENTS.to_vec(),
            Wire::SubAgentReview => vec![Self::Review],
            Wire::SubAgentCompact => vec![Self::Compact],
            Wire::SubAgentThreadSpawn => vec![Self::ThreadSpawn],
            Wire::SubAgentOther => vec![Self::OtherAgent],
            Wire::Unknown => vec![Self::Unknown],
        };
        kinds.iter().flat_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_writes_and_the_spelling_of_file_names() {
        let id = "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6";
        let cursor: Cursor = format!("2025-03-04T05:09:07Z|{id}").parse().unwrap();
        assert_eq!(cursor.at, 1741064947);
        assert_eq!(cursor.to_string(), format!("2025-03-04T05:09:07Z|{id}"));
        assert_eq!(format!("2025-03-04T05-09-07|{id}").parse(), Ok(cursor));
        for bad in ["x", "", "|", "2025-03-04T05:09:07Z", "2025-03-04T05:09:07Z|x"] {
            assert_eq!(bad.parse::<Cursor>().unwrap_err().to_string(), format!("invalid cursor: {bad}"));
        }
    }

    #[test]
    fn list_params_are_clamped_and_empty_filters_mean_every_thread() {
        let ask = |params| ListQuery::from_params(params, "mock").unwrap();
        let limit = |limit| ask(ThreadListParams { limit: Some(limit), ..Default::default() }).limit;
        assert_eq!(ask(ThreadListParams::default()), ListQuery::new("mock"));
        assert_eq!((limit(0), limit(7), limit(1000)), (1, 7, 100));
        let every =
            ThreadListParams { model_providers: Some(vec![]), source_kinds: Some(vec![]), ..Default::default() };
        assert_eq!((ask(every.clone()).providers, ask(every).kinds), (None, None));
    }
}

//! Queries for lists of threads, their pages and cursors.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use loomd_protocol::{CwdFilter, SortDirection, SubAgentSource, ThreadListParams, ThreadSortKey, ThreadSourceKind};

use crate::rollout::Source;
use crate::{StoredThread, ThreadId};

/// Rows of a page without a `limit`.
const DEFAULT_LIMIT: u32 = 25;
/// Rows of the largest page.
const MAX_LIMIT: u32 = 100;

/// Which threads to list, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct ListQuery {
    /// By creation, or else by the last change.
    pub sort: ThreadSortKey,
    pub direction: SortDirection,
    pub limit: usize,
    /// Where the page begins.
    pub after: Option<Cursor>,
    pub archived: bool,
    /// `None`: every provider.
    pub providers: Option<Vec<String>>,
    /// Stands for the provider of threads that recorded none.
    pub default_provider: String,
    /// `None`: threads that a person started, and of relatives every thread. An empty list: every thread.
    pub kinds: Option<Vec<ThreadSourceKind>>,
    /// Any of these working directories; `None`: every one.
    pub cwds: Option<Vec<String>>,
    /// A part of the first user message, in its case.
    pub search: Option<String>,
    /// Any of these names of clients; `None`: every one.
    pub originators: Option<Vec<String>>,
    /// Threads that are left out, before pages are cut.
    pub excluded: Vec<ThreadId>,
    /// Only these threads, also those without a first message.
    pub only: Option<Vec<ThreadId>>,
    /// Threads of agents that this one started.
    pub parent: Option<ThreadId>,
    /// Threads of agents below this one, at every depth.
    pub ancestor: Option<ThreadId>,
    /// Forks that were attached to this one.
    pub attached_to: Option<ThreadId>,
}

/// One page, in the order of the query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub threads: Vec<StoredThread>,
    /// `None` when there are no more.
    pub next: Option<Cursor>,
    /// Begins a page in the opposite direction with the first thread of this one; `None` for an empty page.
    pub back: Option<Cursor>,
    /// How many threads could not be read: with any, some may be missing from the list.
    pub unreadable: usize,
}

/// A request for a list that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    #[error(transparent)]
    Cursor(#[from] BadCursor),
    #[error("{0}")]
    Invalid(String),
    #[error("invalid excluded thread id: {0}")]
    Excluded(uuid::Error),
}

impl ListQuery {
    /// The first page of what `thread/list` shows by default.
    pub fn new(default_provider: impl Into<String>) -> Self {
        let default_provider = default_provider.into();
        Self {
            sort: ThreadSortKey::CreatedAt,
            direction: SortDirection::Desc,
            limit: DEFAULT_LIMIT as usize,
            after: None,
            archived: false,
            providers: Some(vec![default_provider.clone()]),
            default_provider,
            kinds: None,
            cwds: None,
            search: None,
            originators: None,
            excluded: Vec::new(),
            only: None,
            parent: None,
            ancestor: None,
            attached_to: None,
        }
    }

    /// The query of a `thread/list` request, without what is not stored here: its section and project.
    pub fn from_params(params: ThreadListParams, default_provider: &str) -> Result<Self, BadQuery> {
        let query = Self::new(default_provider);
        let relative = |name: &str, id: Option<String>| {
            let parse = |id: String| id.parse::<ThreadId>().map_err(|error| format!("invalid {name} id: {error}"));
            id.map(parse).transpose().map_err(BadQuery::Invalid)
        };
        if params.parent_thread_id.is_some() && params.ancestor_thread_id.is_some() {
            return Err(BadQuery::Invalid("parentThreadId and ancestorThreadId are mutually exclusive".into()));
        }
        let excluded = params.excluded_thread_ids.unwrap_or_default();
        Ok(Self {
            sort: params.sort_key.unwrap_or(query.sort),
            direction: params.sort_direction.unwrap_or(query.direction),
            limit: page_limit(params.limit),
            after: params.cursor.map(|cursor| cursor.parse()).transpose()?,
            archived: params.archived.unwrap_or(false),
            providers: match params.model_providers {
                Some(providers) if providers.is_empty() => None,
                Some(providers) => Some(providers),
                None => query.providers,
            },
            kinds: params.source_kinds.filter(|kinds| !kinds.is_empty()),
            cwds: params.cwd.map(|cwd| match cwd {
                CwdFilter::One(cwd) => vec![cwd],
                CwdFilter::Any(cwds) => cwds,
            }),
            search: params.search_term.filter(|term| !term.is_empty()),
            originators: params.originators.filter(|names| !names.is_empty()),
            excluded: excluded.iter().map(|id| id.parse().map_err(BadQuery::Excluded)).collect::<Result<_, _>>()?,
            only: None,
            parent: relative("parent thread", params.parent_thread_id)?,
            ancestor: relative("ancestor thread", params.ancestor_thread_id)?,
            attached_to: relative("attached thread parent", params.attached_to_thread_id)?,
            default_provider: query.default_provider,
        })
    }

    /// Whether the threads are ordered by their creation.
    pub fn by_creation(&self) -> bool {
        self.sort == ThreadSortKey::CreatedAt
    }

    /// Whether the query names relatives or single threads, which are few and found by their ids.
    pub(crate) fn is_narrow(&self) -> bool {
        self.only.is_some() || self.parent.is_some() || self.ancestor.is_some() || self.attached_to.is_some()
    }

    /// The sources that the query wants.
    pub fn wanted_kinds(&self) -> Vec<Kind> {
        match &self.kinds {
            None if self.parent.is_some() || self.ancestor.is_some() => Kind::ALL.to_vec(),
            Some(kinds) if kinds.is_empty() => Kind::ALL.to_vec(),
            kinds => Kind::of_query(kinds.as_deref()),
        }
    }
}

/// The rows of a page.
pub fn page_limit(limit: Option<u32>) -> usize {
    limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize
}

/// The position of a row: its time in nanoseconds since 1970, then its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub at: i64,
    pub id: ThreadId,
    /// Whether the page begins with the row itself, not after it.
    pub inclusive: bool,
}

/// A cursor that this server did not give out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: {0}")]
pub struct BadCursor(pub String);

const NANOS: i64 = 1_000_000_000;
/// Behind a cursor that begins with its row.
const INCLUSIVE: &str = "|+";

impl Cursor {
    /// The position of a row with a time in seconds.
    pub fn of_seconds(at: i64, id: ThreadId) -> Self {
        Self { at: at.saturating_mul(NANOS), id, inclusive: false }
    }

    /// The time in whole seconds.
    pub(crate) fn seconds(&self) -> i64 {
        self.at.div_euclid(NANOS)
    }

    /// The same position for a page in the opposite direction.
    pub fn reversed(self) -> Self {
        Self { inclusive: true, ..self }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Timestamp::from_nanosecond(self.at.into()).unwrap_or(Timestamp::MIN);
        write!(f, "{at}|{}{}", self.id, if self.inclusive { INCLUSIVE } else { "" })
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let parse = || {
            let (place, inclusive) = match text.strip_suffix(INCLUSIVE) {
                Some(place) => (place, true),
                None => (text, false),
            };
            let (time, id) = place.split_once('|')?;
            let at = match time.parse::<Timestamp>() {
                Ok(time) => time,
                // The time as file names spell it.
                Err(_) => DateTime::strptime("%Y-%m-%dT%H-%M-%S", time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp(),
            };
            Some(Self { at: i64::try_from(at.as_nanosecond()).ok()?, id: id.parse().ok()?, inclusive })
        };
        parse().ok_or_else(|| BadCursor(text.to_owned()))
    }
}

/// A working directory as the query names it and, when that differs, without links: threads record either.
pub fn cwd_spellings(cwd: &str) -> Vec<String> {
    let mut found = vec![cwd.to_owned()];
    if let Some(resolved) = Path::new(cwd).canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok())
        && resolved != cwd
    {
        found.push(resolved);
    }
    found
}

/// The groups of sources that a query can name, as indexes number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
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
    pub(crate) const ALL: [Self; 12] = [
        Self::Cli,
        Self::Vscode,
        Self::Exec,
        Self::AppServer,
        Self::Known,
        Self::Custom,
        Self::Review,
        Self::Compact,
        Self::ThreadSpawn,
        Self::OtherAgent,
        Self::MemoryConsolidation,
        Self::Unknown,
    ];
    const SUB_AGENTS: [Self; 5] =
        [Self::Review, Self::Compact, Self::ThreadSpawn, Self::OtherAgent, Self::MemoryConsolidation];

    /// The group of a source.
    pub fn of(source: &Source) -> Self {
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
        assert_eq!(cursor.seconds(), 1741064947);
        assert_eq!(cursor.to_string(), format!("2025-03-04T05:09:07Z|{id}"));
        let exact = Cursor { at: cursor.at + 1, ..cursor.reversed() };
        assert_eq!(exact.to_string(), format!("2025-03-04T05:09:07.000000001Z|{id}|+"));
        assert_eq!(exact.to_string().parse(), Ok(exact));
        assert_eq!(format!("2025-03-04T05-09-07|{id}").parse(), Ok(cursor));
        for bad in ["x", "", "|", "|+", "2025-03-04T05:09:07Z", "2025-03-04T05:09:07Z|x"] {
            assert_eq!(bad.parse::<Cursor>().unwrap_err().to_string(), format!("invalid cursor: {bad}"));
        }
    }

    #[test]
    fn list_params_are_clamped_and_empty_filters_of_sources_mean_every_thread() {
        let ask = |params| ListQuery::from_params(params, "mock").unwrap();
        let limit = |limit| ask(ThreadListParams { limit: Some(limit), ..Default::default() }).limit;
        assert_eq!(ask(ThreadListParams::default()), ListQuery::new("mock"));
        assert_eq!((limit(0), limit(7), limit(1000)), (1, 7, 100));
        let every =
            ThreadListParams { model_providers: Some(vec![]), source_kinds: Some(vec![]), ..Default::default() };
        assert_eq!((ask(every.clone()).providers, ask(every).kinds), (None, None));
        let nowhere = ThreadListParams { cwd: Some(CwdFilter::Any(vec![])), ..Default::default() };
        assert_eq!(ask(nowhere).cwds, Some(vec![]));
    }

    #[test]
    fn bad_relatives_are_named() {
        let refused = |params| ListQuery::from_params(params, "mock").unwrap_err().to_string();
        let id = Some("x".to_owned());
        let parent = ThreadListParams { parent_thread_id: id.clone(), ..Default::default() };
        assert!(refused(parent.clone()).starts_with("invalid parent thread id: "));
        let both = ThreadListParams { ancestor_thread_id: id.clone(), ..parent };
        assert_eq!(refused(both), "parentThreadId and ancestorThreadId are mutually exclusive");
        let attached = ThreadListParams { attached_to_thread_id: id.clone(), ..Default::default() };
        assert!(refused(attached).starts_with("invalid attached thread parent id: "));
        let excluded = ThreadListParams { excluded_thread_ids: id.map(|id| vec![id]), ..Default::default() };
        assert!(refused(excluded).starts_with("invalid excluded thread id: "));
    }
}

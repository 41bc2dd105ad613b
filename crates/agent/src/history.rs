//! Reading a stored thread, a piece at a time.

use std::future::poll_fn;
use std::task::Poll;

use loomd_protocol::Turn;
use loomd_store::rollout::{Compacted, Event, Glance, Line, Record, SessionMeta, TokenUsageInfo, TurnContext};
use loomd_store::{Result, Store, ThreadId};

use crate::turns::{Turns, interrupt_open};

/// How much of a rollout is in memory at a time while it is read.
const PIECE: usize = 256 * 1024;

/// How far back the end of a rollout is searched. What is not there is not recent.
const REACH: usize = 4 * 1024 * 1024;

/// Where a thread says what it is.
const HEAD: usize = 64 * 1024;

/// The turns of a thread. Unless one is running, none is in progress.
pub(crate) async fn turns(store: &dyn Store, id: ThreadId, running: bool) -> Result<Vec<Turn>> {
    let mut reading = ReadTurns::new(id);
    reading.read_on(store).await?;
    let mut turns = reading.finish();
    if !running {
        interrupt_open(&mut turns);
    }
    Ok(turns)
}

/// The turns of a thread that may grow while they are read.
pub(crate) struct ReadTurns {
    id: ThreadId,
    turns: Turns,
    read: u64,
}

impl ReadTurns {
    pub fn new(id: ThreadId) -> Self {
        Self { id, turns: Turns::new(id), read: 0 }
    }

    /// Reads to the end of the rollout, from where it was last read to.
    pub async fn read_on(&mut self, store: &dyn Store) -> Result<()> {
        let turns = &mut self.turns;
        self.read = each_line_as_it_stands(store, self.id, self.read, |line| turns.push_bytes(line)).await?;
        Ok(())
    }

    pub fn finish(self) -> Vec<Turn> {
        self.turns.finish()
    }
}

/// Hands over every readable line of a thread, in order; gives the length of what was read.
pub(crate) async fn each_line(store: &dyn Store, id: ThreadId, take: impl FnMut(&Line<'_>)) -> Result<u64> {
    each_line_from(store, id, 0, take).await
}

/// The same, from the line on that begins at an offset.
pub(crate) async fn each_line_from(
    store: &dyn Store,
    id: ThreadId,
    from: u64,
    mut take: impl FnMut(&Line<'_>),
) -> Result<u64> {
    each_line_as_it_stands(store, id, from, |line| {
        if let Some(line) = Line::parse(line) {
            take(&line);
        }
    })
    .await
}

async fn each_line_as_it_stands(
    store: &dyn Store,
    id: ThreadId,
    from: u64,
    mut take: impl FnMut(&[u8]),
) -> Result<u64> {
    let mut window = store.read(id, from, PIECE).await?;
    while !window.bytes.is_empty() {
        // The next piece is fetched while this one is looked at.
        let mut next = store.read(id, window.end(), PIECE);
        let begun = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        for (_, line) in window.lines() {
            take(line);
        }
        drop(window);
        window = match begun {
            Poll::Ready(read) => read?,
            Poll::Pending => next.await?,
        };
        tokio::task::yield_now().await;
    }
    Ok(window.end())
}

/// What a thread says of itself, whole. What is listed leaves out what is long.
pub(crate) async fn meta(store: &dyn Store, id: ThreadId) -> Result<Option<SessionMeta>> {
    let window = store.read(id, 0, HEAD).await?;
    let mut records = window.lines().filter_map(|(_, line)| Line::parse(line)?.decode());
    Ok(records.find_map(|record| match record {
        Record::SessionMeta(meta) => Some(*meta),
        _ => None,
    }))
}

/// The settings of the last turn.
pub(crate) async fn last_turn_context(store: &dyn Store, id: ThreadId) -> Result<Option<TurnContext>> {
    last(store, id, None, "turn_context", |record| match record {
        Record::TurnContext(context) => Some(*context),
        _ => None,
    })
    .await
}

/// The tokens used so far.
pub(crate) async fn last_usage(store: &dyn Store, id: ThreadId) -> Result<Option<TokenUsageInfo>> {
    last(store, id, None, "token_count", token_usage).await
}

/// The tokens used before the line at an offset.
pub(crate) async fn usage_before(store: &dyn Store, id: ThreadId, to: u64) -> Result<Option<TokenUsageInfo>> {
    last(store, id, Some(to), "token_count", token_usage).await
}

fn token_usage(record: Record) -> Option<TokenUsageInfo> {
    match record {
        Record::EventMsg(Event::TokenCount(count)) => count.info,
        _ => None,
    }
}

/// Where to begin reading to know the conversation: the turn that holds the last summary with the items that
/// replaced the history. `None` when there is none, or when it does not say where its turn began.
pub(crate) async fn last_summary(store: &dyn Store, id: ThreadId) -> Result<Option<u64>> {
    let (mut to, mut found) = (None, false);
    loop {
        let window = store.read_back(id, to, PIECE).await?;
        if window.bytes.is_empty() {
            return Ok(None);
        }
        // Most pieces hold no summary, which is seen without looking at their lines.
        if found || memchr::memmem::find(&window.bytes, b"replacement_history").is_some() {
            let lines: Vec<(u64, &[u8])> = window.lines().collect();
            for (offset, line) in lines.into_iter().rev() {
                match boundary(line) {
                    Some(Boundary::Summary) => found = true,
                    Some(Boundary::Begins) if found => return Ok(Some(offset)),
                    Some(Boundary::Ends) if found => return Ok(None),
                    _ => {}
                }
            }
        }
        to = Some(window.start);
    }
}

enum Boundary {
    Summary,
    Begins,
    Ends,
}

/// What a line says about the bounds of turns and of the conversation.
fn boundary(line: &[u8]) -> Option<Boundary> {
    let kind = |kind: &str, payload_type: Option<&str>| match (kind, payload_type) {
        ("compacted", _) => Some(Boundary::Summary),
        ("event_msg", Some("task_started" | "turn_started")) => Some(Boundary::Begins),
        ("event_msg", Some("task_complete" | "turn_complete" | "turn_aborted" | "thread_rolled_back")) => {
            Some(Boundary::Ends)
        }
        _ => None,
    };
    let bound = match Glance::at(line) {
        Some(glance) if glance.kind != "event_msg" || glance.payload_type().is_some() => {
            kind(glance.kind, glance.payload_type())
        }
        _ => Line::parse(line).and_then(|line| kind(&line.kind, line.payload_type().as_deref())),
    };
    bound.filter(|bound| match bound {
        // Old summaries need the history before them.
        Boundary::Summary => matches!(
            Line::parse(line).and_then(|line| line.decode()),
            Some(Record::Compacted(Compacted { replacement_history: Some(_), .. }))
        ),
        _ => true,
    })
}

/// The last record before an offset, or before the end, that `wanted` takes, if it is recent. Lines without the
/// marker are not looked at.
async fn last<T>(
    store: &dyn Store,
    id: ThreadId,
    mut to: Option<u64>,
    marker: &str,
    wanted: impl Fn(Record) -> Option<T>,
) -> Result<Option<T>> {
    let mut searched = 0;
    while searched < REACH {
        let window = store.read_back(id, to, PIECE).await?;
        if window.bytes.is_empty() {
            break;
        }
        let mut found = None;
        let marked = |line: &[u8]| memchr::memmem::find(line, marker.as_bytes()).is_some();
        for (_, line) in window.lines().filter(|(_, line)| marked(line)) {
            if let Some(value) = Line::parse(line).and_then(|line| line.decode()).and_then(&wanted) {
                found = Some(value);
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        searched += window.bytes.len();
        to = Some(window.start);
    }
    Ok(None)
}

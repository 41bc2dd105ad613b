//! Reading a stored thread, a piece at a time.

use std::future::poll_fn;
use std::task::Poll;

use loomd_protocol::Turn;
use loomd_store::rollout::{Event, Line, Record, SessionMeta, TokenUsageInfo, TurnContext};
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
    let mut turns = Turns::new(id);
    each_line_as_it_stands(store, id, |line| turns.push_bytes(line)).await?;
    let mut turns = turns.finish();
    if !running {
        interrupt_open(&mut turns);
    }
    Ok(turns)
}

/// Hands over every readable line of a thread, in order; gives the length of what was read.
pub(crate) async fn each_line(store: &dyn Store, id: ThreadId, mut take: impl FnMut(&Line<'_>)) -> Result<u64> {
    each_line_as_it_stands(store, id, |line| {
        if let Some(line) = Line::parse(line) {
            take(&line);
        }
    })
    .await
}

async fn each_line_as_it_stands(store: &dyn Store, id: ThreadId, mut take: impl FnMut(&[u8])) -> Result<u64> {
    let mut window = store.read(id, 0, PIECE).await?;
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
    last(store, id, |record| match record {
        Record::TurnContext(context) => Some(*context),
        _ => None,
    })
    .await
}

/// The tokens used so far.
pub(crate) async fn last_usage(store: &dyn Store, id: ThreadId) -> Result<Option<TokenUsageInfo>> {
    last(store, id, |record| match record {
        Record::EventMsg(Event::TokenCount(count)) => count.info,
        _ => None,
    })
    .await
}

/// The last record that `wanted` takes, if it is recent.
async fn last<T>(store: &dyn Store, id: ThreadId, wanted: impl Fn(Record) -> Option<T>) -> Result<Option<T>> {
    let (mut to, mut searched) = (None, 0);
    while searched < REACH {
        let window = store.read_back(id, to, PIECE).await?;
        if window.bytes.is_empty() {
            break;
        }
        let mut found = None;
        for (_, line) in window.lines() {
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

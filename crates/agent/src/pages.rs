//! Reading turns for pages. Only the turns of the page are read: a cached outline of the rollout gives their positions.

use std::collections::HashMap;
use std::sync::Arc;

use loomd_protocol::{SortDirection, ThreadItem, Turn, TurnStatus};
use loomd_store::{Reader, Result as StoreResult, Store, ThreadId};
use parking_lot::Mutex;

use crate::history;
use crate::outline::Outline;

/// The number of turns that are read at a time.
const BLOCK: usize = 16;

/// The running turn, and its items that were published as started and not yet as completed.
pub(crate) struct OpenTurn {
    pub turn_id: String,
    pub items: Vec<ThreadItem>,
}

/// The thread whose turns are read.
pub(crate) struct TurnSource<'a> {
    pub store: &'a dyn Store,
    pub reader: &'a dyn Reader,
    pub running: Option<OpenTurn>,
}

impl TurnSource<'_> {
    /// A stored turn with its current state: the running turn is in progress and has its open items, any other turn
    /// that never ended was interrupted.
    fn shown(&self, mut turn: Turn) -> Turn {
        match &self.running {
            None if turn.status == TurnStatus::InProgress => turn.status = TurnStatus::Interrupted,
            Some(running) if running.turn_id == turn.id => {
                turn.status = TurnStatus::InProgress;
                let written = |item: &ThreadItem| turn.items.iter().any(|written| written.id() == item.id());
                let open: Vec<_> = running.items.iter().filter(|item| !written(item)).cloned().collect();
                turn.items.extend(open);
            }
            _ => {}
        }
        turn
    }

    /// [`Outlines::each_turn`] without an outline: reads the whole rollout.
    async fn each_of_all(
        &self,
        from: Option<&str>,
        direction: SortDirection,
        mut take: impl FnMut(usize, Turn) -> bool,
    ) -> StoreResult<()> {
        let mut turns: Vec<_> = history::turns(self.reader, true).await?.into_iter().enumerate().collect();
        if direction == SortDirection::Desc {
            turns.reverse();
        }
        let turns = turns.into_iter().skip_while(|(_, turn)| from.is_some_and(|id| turn.id != id));
        for (number, turn) in turns {
            if !take(number, self.shown(turn)) {
                break;
            }
        }
        Ok(())
    }
}

/// The most memory of all cached outlines.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_OUTLINES: usize = 256;

/// A cache of the outlines that were last used.
#[derive(Default)]
pub(crate) struct Outlines(Mutex<OutlineCache>);

#[derive(Default)]
struct OutlineCache {
    known: HashMap<ThreadId, CachedOutline>,
    clock: u64,
}

struct CachedOutline {
    outline: Arc<tokio::sync::Mutex<Outline>>,
    bytes: usize,
    used: u64,
}

impl Outlines {
    /// Calls `take` with the turns of a thread and their numbers, in order, from the one with the id `from` or else the
    /// first, until it returns false. Not called when no turn has the id.
    pub async fn each_turn(
        &self,
        source: TurnSource<'_>,
        from: Option<&str>,
        direction: SortDirection,
        mut take: impl FnMut(usize, Turn) -> bool,
    ) -> StoreResult<()> {
        let id = source.reader.id();
        let shared = self.get(id);
        let mut outline = shared.lock().await;
        if outline.is_new()
            && let Some(kept) = Outline::kept(source.store, source.reader).await
        {
            *outline = kept;
        }
        outline.extend(source.reader).await?;
        if let Err(error) = outline.keep(source.store, source.reader).await {
            tracing::debug!(%error, thread = %id, "an outline could not be kept");
        }
        self.used(id, outline.bytes());
        if !outline.is_usable() {
            return source.each_of_all(from, direction, take).await;
        }
        let begin = match (from, direction) {
            (None, SortDirection::Asc) => Some(0),
            (None, SortDirection::Desc) => outline.len().checked_sub(1),
            (Some(id), SortDirection::Asc) => outline.places(id).next(),
            (Some(id), SortDirection::Desc) => outline.places(id).next_back(),
        };
        let Some(mut at) = begin.filter(|at| *at < outline.len()) else { return Ok(()) };
        let mut given = false;
        loop {
            let block = match direction {
                SortDirection::Asc => at..(at + BLOCK).min(outline.len()),
                SortDirection::Desc => (at + 1).saturating_sub(BLOCK)..at + 1,
            };
            let Some(mut turns) = outline.read(source.reader, block.clone()).await? else {
                // The rollout was rewritten by another program.
                *outline = Outline::default();
                return match given {
                    false => source.each_of_all(from, direction, take).await,
                    true => Ok(()),
                };
            };
            let mut numbers: Vec<usize> = block.clone().collect();
            if direction == SortDirection::Desc {
                turns.reverse();
                numbers.reverse();
            }
            for (number, turn) in numbers.into_iter().zip(turns) {
                given = true;
                if !take(number, source.shown(turn)) {
                    return Ok(());
                }
            }
            at = match direction {
                SortDirection::Asc if block.end < outline.len() => block.end,
                SortDirection::Desc if block.start > 0 => block.start - 1,
                _ => return Ok(()),
            };
        }
    }

    fn get(&self, id: ThreadId) -> Arc<tokio::sync::Mutex<Outline>> {
        let known = || CachedOutline { outline: Arc::default(), bytes: 0, used: 0 };
        Arc::clone(&self.0.lock().known.entry(id).or_insert_with(known).outline)
    }

    /// Sets an outline's size and time of use, and evicts the least recently used outlines beyond the limits.
    fn used(&self, id: ThreadId, bytes: usize) {
        let cache = &mut *self.0.lock();
        cache.clock += 1;
        if let Some(known) = cache.known.get_mut(&id) {
            (known.bytes, known.used) = (bytes, cache.clock);
        }
        let total = |known: &HashMap<ThreadId, CachedOutline>| known.values().map(|known| known.bytes).sum::<usize>();
        while cache.known.len() > MAX_OUTLINES || total(&cache.known) > MAX_BYTES {
            let oldest = cache.known.iter().filter(|(other, _)| **other != id).min_by_key(|(_, known)| known.used);
            let Some(oldest) = oldest.map(|(id, _)| *id) else { break };
            cache.known.remove(&oldest);
        }
    }
}

//! Pages of turns and items. A page reads the turns that it shows and no others: an outline of the rollout, kept
//! in memory and extended as the rollout grows, says where they are.

use std::collections::HashMap;
use std::sync::Arc;

use loomd_protocol::{
    SortDirection, ThreadItem, ThreadItemEntry, ThreadItemsListResponse, ThreadTurnsListResponse, Turn, TurnItemsView,
    TurnStatus,
};
use loomd_store::{Error, Result as StoreResult, Store, ThreadId};
use parking_lot::Mutex;

use crate::history;
use crate::outline::Outline;
use crate::paging::{Filling, PageRequest};
use crate::refusal::Refusal;
use crate::threads::{Threads, has_turns, unreadable};

/// Turns that are read at a time.
const BLOCK: usize = 16;

impl Threads {
    /// A page of a thread's turns.
    pub async fn turns_page(
        &self,
        id: ThreadId,
        request: &PageRequest,
        view: TurnItemsView,
    ) -> Result<ThreadTurnsListResponse, Refusal> {
        let mut page = Filling::<Turn>::new(request)?;
        let (anchor, direction) = (page.anchor().map(str::to_owned), page.direction());
        self.each_turn(id, anchor.as_deref(), direction, |turn| {
            page.add(turn, view);
            !page.is_full()
        })
        .await?;
        page.finish()
    }

    /// A page of a thread's items, or of one turn's.
    pub async fn items_page(
        &self,
        id: ThreadId,
        request: &PageRequest,
        turn_id: Option<&str>,
    ) -> Result<ThreadItemsListResponse, Refusal> {
        let mut page = Filling::<ThreadItemEntry>::new(request)?;
        let (anchor, direction) = (page.anchor().map(str::to_owned), page.direction());
        self.each_turn(id, turn_id.or(anchor.as_deref()), direction, |turn| {
            let wanted = turn_id.is_none_or(|id| turn.id == id);
            if wanted {
                page.add(turn);
            }
            // Turns that share an id follow each other, if there are any.
            wanted && !page.is_full()
        })
        .await?;
        page.finish()
    }

    /// Hands over a thread's turns in an order, from the one with an id or from the first on, until `take` wants
    /// no more; none when no turn has the id.
    async fn each_turn(
        &self,
        id: ThreadId,
        from: Option<&str>,
        direction: SortDirection,
        take: impl FnMut(Turn) -> bool,
    ) -> Result<(), Refusal> {
        let _lane = self.lanes.enter(id).await;
        let running = match self.get(id) {
            Some(loaded) => {
                has_turns(id, &loaded)?;
                // Looked at before the rollout is read: an item that ends meanwhile is found there.
                loaded
                    .view
                    .running_turn()
                    .map(|turn_id| RunningTurn { items: loaded.events.open_items(&turn_id), turn_id })
            }
            None => match self.store.find(id, None).await {
                Err(Error::NotFound { .. }) => return Err(Refusal::invalid(format!("thread not loaded: {id}"))),
                found => found.map(|_| None).map_err(|error| unreadable(id, error))?,
            },
        };
        let reading = Reading { store: &*self.store, id, running };
        let read = self.outlines.each_turn(reading, from, direction, take).await;
        self.put_back(id);
        read.map_err(|error| unreadable(id, error))
    }
}

/// A turn that is running, and its items that are not in the rollout yet.
struct RunningTurn {
    turn_id: String,
    items: Vec<ThreadItem>,
}

/// A thread whose turns are read.
struct Reading<'a> {
    store: &'a dyn Store,
    id: ThreadId,
    running: Option<RunningTurn>,
}

impl Reading<'_> {
    /// A turn as it is now.
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

    /// Through the whole rollout.
    async fn each_of_all(
        &self,
        from: Option<&str>,
        direction: SortDirection,
        mut take: impl FnMut(Turn) -> bool,
    ) -> StoreResult<()> {
        let mut turns = history::turns(self.store, self.id, true).await?;
        if direction == SortDirection::Desc {
            turns.reverse();
        }
        let turns = turns.into_iter().skip_while(|turn| from.is_some_and(|id| turn.id != id));
        for turn in turns {
            if !take(self.shown(turn)) {
                break;
            }
        }
        Ok(())
    }
}

/// The memory that outlines may take in all.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_OUTLINES: usize = 256;

/// Outlines of the rollouts that were last paged through.
#[derive(Default)]
pub(crate) struct Outlines(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    known: HashMap<ThreadId, Known>,
    clock: u64,
}

struct Known {
    outline: Arc<tokio::sync::Mutex<Outline>>,
    bytes: usize,
    used: u64,
}

impl Outlines {
    async fn each_turn(
        &self,
        reading: Reading<'_>,
        from: Option<&str>,
        direction: SortDirection,
        mut take: impl FnMut(Turn) -> bool,
    ) -> StoreResult<()> {
        let shared = self.get(reading.id);
        let mut outline = shared.lock().await;
        if outline.is_new()
            && let Some(kept) = Outline::kept(reading.store, reading.id).await
        {
            *outline = kept;
        }
        outline.extend(reading.store, reading.id).await?;
        if let Err(error) = outline.keep(reading.store, reading.id).await {
            tracing::debug!(%error, thread = %reading.id, "an outline could not be kept");
        }
        self.used(reading.id, outline.bytes());
        if !outline.is_usable() {
            return reading.each_of_all(from, direction, take).await;
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
            let Some(mut turns) = outline.read(reading.store, reading.id, block.clone()).await? else {
                // Another program has rewritten the rollout.
                *outline = Outline::default();
                return match given {
                    false => reading.each_of_all(from, direction, take).await,
                    true => Ok(()),
                };
            };
            if direction == SortDirection::Desc {
                turns.reverse();
            }
            for turn in turns {
                given = true;
                if !take(reading.shown(turn)) {
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
        let known = || Known { outline: Arc::default(), bytes: 0, used: 0 };
        Arc::clone(&self.0.lock().known.entry(id).or_insert_with(known).outline)
    }

    /// Takes note of an outline's size, and forgets those that were not used for longest if they are too many.
    fn used(&self, id: ThreadId, bytes: usize) {
        let cache = &mut *self.0.lock();
        cache.clock += 1;
        if let Some(known) = cache.known.get_mut(&id) {
            (known.bytes, known.used) = (bytes, cache.clock);
        }
        let total = |known: &HashMap<ThreadId, Known>| known.values().map(|known| known.bytes).sum::<usize>();
        while cache.known.len() > MAX_OUTLINES || total(&cache.known) > MAX_BYTES {
            let oldest = cache.known.iter().filter(|(other, _)| **other != id).min_by_key(|(_, known)| known.used);
            let Some(oldest) = oldest.map(|(id, _)| *id) else { break };
            cache.known.remove(&oldest);
        }
    }
}

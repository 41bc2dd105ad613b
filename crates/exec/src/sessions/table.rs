//! The table of sessions by id, and the eviction of the least recently used one when there are too many.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::session::Session;

const MAX_SESSIONS: usize = 64;
/// The number of most recently used sessions that are never evicted.
const PROTECTED: usize = 8;
const IDS: std::ops::Range<u32> = 1_000..100_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Table(Arc<TableInner>);

#[derive(Debug, Default)]
struct TableInner(Mutex<TableState>);

#[derive(Debug, Default)]
struct TableState {
    slots: HashMap<u32, Slot>,
    /// Counts uses, to order sessions by their last one.
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    /// `None`: reserved.
    session: Option<Session>,
    used: u64,
}

/// An id that no other command gets. Dropped without a start, it is free again.
#[derive(Debug)]
pub struct ReservedId {
    id: u32,
    table: Table,
}

impl ReservedId {
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        let mut state = self.table.state();
        if state.slots.get(&self.id).is_some_and(|slot| slot.session.is_none()) {
            state.slots.remove(&self.id);
        }
    }
}

impl Table {
    fn state(&self) -> MutexGuard<'_, TableState> {
        self.0.0.lock()
    }

    pub fn reserve(&self) -> ReservedId {
        let mut state = self.state();
        let used = state.next_use();
        let mut id = random_id();
        while state.slots.contains_key(&id) {
            // There are far more ids than slots.
            id = if id + 1 < IDS.end { id + 1 } else { IDS.start };
        }
        state.slots.insert(id, Slot { session: None, used });
        ReservedId { id, table: self.clone() }
    }

    /// Puts a session in its slot. Beyond the limit the least recently used session is killed.
    pub fn insert(&self, reserved: ReservedId, session: Session) -> u32 {
        let mut state = self.state();
        if let Some(id) = state.surplus()
            && let Some(slot) = state.slots.remove(&id)
            && let Some(session) = slot.session
        {
            session.stop();
        }
        let used = state.next_use();
        state.slots.insert(reserved.id, Slot { session: Some(session), used });
        drop(state);
        reserved.id
    }

    pub fn use_session(&self, id: u32) -> Option<Session> {
        let mut state = self.state();
        let used = state.next_use();
        let slot = state.slots.get_mut(&id)?;
        slot.used = used;
        slot.session.clone()
    }

    pub fn remove(&self, id: u32) {
        self.state().slots.remove(&id);
    }

    /// Kills a session; the next poll of it reports its end.
    pub fn stop(&self, id: u32) {
        if let Some(session) = self.state().slots.get(&id).and_then(|slot| slot.session.as_ref()) {
            session.stop();
        }
    }

    pub fn open(&self) -> usize {
        self.state().slots.values().filter(|slot| slot.session.is_some()).count()
    }

    pub fn clear(&self) {
        self.0.clear();
    }
}

impl TableState {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The session to evict before another one is inserted: the least recently used one that has ended, else that runs.
    fn surplus(&self) -> Option<u32> {
        let open = self.slots.iter().filter_map(|(id, slot)| Some((*id, slot.used, slot.session.as_ref()?)));
        let mut open: Vec<_> = open.map(|(id, used, session)| (used, id, session.ended())).collect();
        if open.len() < MAX_SESSIONS {
            return None;
        }
        open.sort_unstable();
        open.truncate(open.len() - PROTECTED);
        let ended = open.iter().find(|(_, _, ended)| *ended);
        ended.or(open.first()).map(|(_, id, _)| *id)
    }
}

impl TableInner {
    fn clear(&self) {
        let mut state = self.0.lock();
        for slot in state.slots.drain().filter_map(|(_, slot)| slot.session) {
            slot.stop();
        }
    }
}

impl Drop for TableInner {
    fn drop(&mut self) {
        self.clear();
    }
}

fn random_id() -> u32 {
    let mut bytes = [0; 4];
    // Without randomness ids are predictable, and still unique.
    let _ = getrandom::fill(&mut bytes);
    IDS.start + u32::from_ne_bytes(bytes) % (IDS.end - IDS.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_session_ids_are_unique_and_released_on_drop() {
        let table = Table::default();
        let reserved: Vec<_> = (0..100).map(|_| table.reserve()).collect();
        let ids: std::collections::BTreeSet<_> = reserved.iter().map(ReservedId::id).collect();
        assert_eq!((ids.len(), ids.iter().all(|id| IDS.contains(id)), table.open()), (100, true, 0));
        assert!(ids.iter().all(|id| table.use_session(*id).is_none()), "nothing runs there yet");
        drop(reserved);
        assert!(table.state().slots.is_empty());
    }

    #[test]
    fn the_least_recently_used_session_is_evicted_first() {
        let table = Table::default();
        let ids: Vec<_> = (0..MAX_SESSIONS).map(|_| table.insert(table.reserve(), Session::new(None))).collect();
        assert_eq!(table.open(), MAX_SESSIONS);
        table.use_session(ids[0]);
        table.insert(table.reserve(), Session::new(None));
        let gone: Vec<_> = ids.iter().filter(|id| table.use_session(**id).is_none()).collect();
        assert_eq!((gone, table.open()), (vec![&ids[1]], MAX_SESSIONS));
    }
}

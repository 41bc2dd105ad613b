//! Which sessions there are, under which ids, and which has to go when there are too many.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::session::Session;

const MAX_SESSIONS: usize = 64;
/// The most recently used are not given up for a new one.
const PROTECTED: usize = 8;
const IDS: std::ops::Range<u32> = 1_000..100_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Table(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    places: HashMap<u32, Place>,
    /// Counts uses, to tell which was last.
    uses: u64,
}

#[derive(Debug)]
struct Place {
    /// `None`: reserved.
    session: Option<Session>,
    used: u64,
}

/// An id that no other command gets. Dropped without a start, it is free again.
#[derive(Debug)]
pub struct Reserved {
    id: u32,
    table: Table,
}

impl Reserved {
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut state = self.table.state();
        if state.places.get(&self.id).is_some_and(|place| place.session.is_none()) {
            state.places.remove(&self.id);
        }
    }
}

impl Table {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock()
    }

    pub fn reserve(&self) -> Reserved {
        let mut state = self.state();
        let used = state.next_use();
        let mut id = random_id();
        while state.places.contains_key(&id) {
            // There are far more ids than places.
            id = if id + 1 < IDS.end { id + 1 } else { IDS.start };
        }
        state.places.insert(id, Place { session: None, used });
        Reserved { id, table: self.clone() }
    }

    /// Puts a session in its place. One that nobody has used for long goes when there are too many.
    pub fn insert(&self, reserved: Reserved, session: Session) -> u32 {
        let mut state = self.state();
        if let Some(id) = state.surplus()
            && let Some(place) = state.places.remove(&id)
            && let Some(session) = place.session
        {
            session.stop();
        }
        let used = state.next_use();
        state.places.insert(reserved.id, Place { session: Some(session), used });
        drop(state);
        reserved.id
    }

    pub fn use_session(&self, id: u32) -> Option<Session> {
        let mut state = self.state();
        let used = state.next_use();
        let place = state.places.get_mut(&id)?;
        place.used = used;
        place.session.clone()
    }

    pub fn remove(&self, id: u32) {
        self.state().places.remove(&id);
    }

    pub fn open(&self) -> usize {
        self.state().places.values().filter(|place| place.session.is_some()).count()
    }

    pub fn clear(&self) {
        self.0.clear();
    }
}

impl State {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Who has to go before another session fits: the least recently used that has ended, else that runs.
    fn surplus(&self) -> Option<u32> {
        let open = self.places.iter().filter_map(|(id, place)| Some((*id, place.used, place.session.as_ref()?)));
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

impl Inner {
    fn clear(&self) {
        let mut state = self.0.lock();
        for place in state.places.drain().filter_map(|(_, place)| place.session) {
            place.stop();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.clear();
    }
}

fn random_id() -> u32 {
    let mut bytes = [0; 4];
    // Without randomness ids are only less surprising: they are still unique.
    let _ = getrandom::fill(&mut bytes);
    IDS.start + u32::from_ne_bytes(bytes) % (IDS.end - IDS.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ids_are_unique_and_free_again() {
        let table = Table::default();
        let reserved: Vec<_> = (0..100).map(|_| table.reserve()).collect();
        let ids: std::collections::BTreeSet<_> = reserved.iter().map(Reserved::id).collect();
        assert_eq!((ids.len(), ids.iter().all(|id| IDS.contains(id)), table.open()), (100, true, 0));
        assert!(ids.iter().all(|id| table.use_session(*id).is_none()), "nothing runs there yet");
        drop(reserved);
        assert!(table.state().places.is_empty());
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let table = Table::default();
        let ids: Vec<_> = (0..MAX_SESSIONS).map(|_| table.insert(table.reserve(), Session::new(None))).collect();
        assert_eq!(table.open(), MAX_SESSIONS);
        table.use_session(ids[0]);
        table.insert(table.reserve(), Session::new(None));
        let gone: Vec<_> = ids.iter().filter(|id| table.use_session(**id).is_none()).collect();
        assert_eq!((gone, table.open()), (vec![&ids[1]], MAX_SESSIONS));
    }
}

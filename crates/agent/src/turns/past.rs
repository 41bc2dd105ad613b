//! What is kept of turns that are over while later records are read.

use loomd_protocol::Turn;

use loomd_store::Position;

use super::Start;

/// Turns that are over, oldest first.
pub trait Past {
    fn push(&mut self, turn: Turn, start: Start);

    /// Changes the first turn with this id, for the line after `position`; false when there is no such turn.
    fn change(&mut self, id: &str, position: Position, change: impl FnOnce(&mut Turn)) -> bool;

    /// Forgets the last turns.
    fn drop_last(&mut self, turns: usize);

    /// How many items there are in all turns.
    fn items(&self) -> u64;

    /// An id is made from the number of items.
    fn count_matters(&mut self) {}
}

impl Past for Vec<Turn> {
    fn push(&mut self, turn: Turn, _: Start) {
        Vec::push(self, turn);
    }

    fn change(&mut self, id: &str, _: Position, change: impl FnOnce(&mut Turn)) -> bool {
        self.iter_mut().find(|turn| turn.id == id).map(change).is_some()
    }

    fn drop_last(&mut self, turns: usize) {
        self.truncate(self.len().saturating_sub(turns));
    }

    fn items(&self) -> u64 {
        self.iter().map(|turn| turn.items.len() as u64).sum()
    }
}

//! The collection of turns that are closed while later records are read.

use loomd_protocol::Turn;

use loomd_store::Position;

use super::Start;

/// Closed turns, oldest first.
pub trait ClosedTurns {
    fn push(&mut self, turn: Turn, start: Start);

    /// Changes the first turn with this id, for the line after `position`; false when there is no such turn.
    fn change(&mut self, id: &str, position: Position, change: impl FnOnce(&mut Turn)) -> bool;

    /// Removes the last turns, for a rollback.
    fn drop_last(&mut self, turns: usize);

    /// The number of items of all turns.
    fn items(&self) -> u64;

    /// Called when an item's id is made from the count of items.
    fn item_count_used(&mut self) {}
}

impl ClosedTurns for Vec<Turn> {
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

//! Positions in the records of a thread.

use serde::{Deserialize, Serialize};

/// A place between two records of one thread, or before the first, or after the last. Later places are greater.
///
/// What the number counts is the store's business: the file store counts bytes, the memory store records. Callers
/// compare positions, and keep them as they are; a position means nothing in another thread or another store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(u64);

impl Position {
    /// Before the first record of any thread.
    pub const START: Self = Self(0);

    pub(crate) const fn new(count: u64) -> Self {
        Self(count)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The position as a number, to be kept in derived data. [`Position::from_bits`] is the way back.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The position that [`Position::to_bits`] gave this number for.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

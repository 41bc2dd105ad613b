//! The recent events of a thread, bounded per thread and over all threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::event::{Event, EventId};

/// Bytes of events that one thread keeps. A text delta counts for less than 1,100 bytes, so this is a stretch of more than
/// 470 deltas: some seconds of a model's stream, which is what a client that reconnects at once has missed.
const PER_THREAD: usize = 512 * 1024;

/// The memory that the event logs of all threads share.
#[derive(Debug)]
pub(crate) struct EventBudget {
    per_thread: usize,
    total: usize,
    used: AtomicUsize,
}

impl Default for EventBudget {
    fn default() -> Self {
        Self { per_thread: PER_THREAD, total: Self::TOTAL, used: AtomicUsize::new(0) }
    }
}

impl EventBudget {
    /// Bytes of events that all threads keep together. With more than 64 threads that stream at once, each keeps less.
    pub const TOTAL: usize = 32 * 1024 * 1024;

    #[cfg(test)]
    pub fn new(per_thread: usize, total: usize) -> Self {
        Self { per_thread, total, used: AtomicUsize::new(0) }
    }

    /// The bytes that are kept now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

pub(super) struct RecentEvents {
    budget: Arc<EventBudget>,
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    /// Every event after this one is kept.
    horizon: EventId,
}

impl RecentEvents {
    pub fn new(horizon: EventId, budget: Arc<EventBudget>) -> Self {
        Self { budget, events: VecDeque::new(), bytes: 0, horizon }
    }

    /// Keeps an event, and drops the oldest ones as the bounds demand: the newest, too, when other threads use up
    /// everything or it is too large.
    pub fn push(&mut self, event: Event, bytes: usize) {
        self.bytes += bytes;
        self.events.push_back((event, bytes));
        let mut used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        while self.bytes > self.budget.per_thread || used > self.budget.total {
            let Some((dropped, bytes)) = self.events.pop_front() else { break };
            self.horizon = dropped.id;
            self.bytes -= bytes;
            used = self.budget.used.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        }
    }

    /// `None` when events after this one have been dropped.
    pub fn after(&self, id: EventId) -> Option<Vec<Event>> {
        let first = self.events.partition_point(|(event, _)| event.id <= id);
        (id >= self.horizon).then(|| self.events.range(first..).map(|(event, _)| event.clone()).collect())
    }

    #[cfg(test)]
    pub fn horizon(&self) -> EventId {
        self.horizon
    }

    /// Drops everything up to the last event.
    pub fn clear(&mut self, last: EventId) {
        self.budget.used.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        self.events = VecDeque::new();
        self.horizon = last;
    }
}

impl Drop for RecentEvents {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

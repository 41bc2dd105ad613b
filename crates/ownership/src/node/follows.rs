//! The threads that clients of this node follow, and when each is looked at again.

use std::collections::{BTreeMap, BTreeSet};

use super::Node;
use super::threads::{Lease, Want};
use crate::message::Thread;

#[derive(Default)]
pub(super) struct Follows {
    due: BTreeMap<Thread, u64>,
    order: BTreeSet<(u64, Thread)>,
}

impl Follows {
    pub fn add(&mut self, thread: Thread, due: u64) {
        let due = *self.due.entry(thread).or_insert(due);
        self.order.insert((due, thread));
    }

    pub fn remove(&mut self, thread: Thread) {
        if let Some(due) = self.due.remove(&thread) {
            self.order.remove(&(due, thread));
        }
    }

    /// Looks at a thread not before a time, if it is followed.
    pub fn postpone(&mut self, thread: Thread, due: u64) {
        if self.due.contains_key(&thread) {
            self.remove(thread);
            self.add(thread, due);
        }
    }

    /// A thread that is due, if any. It stays due.
    fn first_due(&self, now: u64) -> Option<Thread> {
        self.order.first().filter(|(due, _)| *due <= now).map(|(_, thread)| *thread)
    }
}

impl Node {
    /// Looks whether the followed threads that are due have an owner, a bounded number at one time. Those without are
    /// taken over.
    pub(super) fn poll_followed(&mut self, now: u64) {
        while self.is_live(now)
            && self.operations.polls() < self.settings.max_polls
            && let Some(thread) = self.follows.first_due(now)
        {
            self.follows.postpone(thread, now + self.settings.follow_poll.max(1));
            let state = self.threads.entry(thread).or_default();
            if matches!(state.lease, Lease::None | Lease::Asking { .. }) {
                state.want = state.want.max(Want::TakeIfFree);
            }
            self.work_on(now, thread);
        }
    }
}

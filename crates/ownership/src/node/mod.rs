//! One node's part of the protocol. `session.rs` keeps its session, `requests.rs` knows the unanswered requests,
//! `routing.rs` brings them to the owner of their thread, `threads.rs` takes, uses and lets go of leases, `follows.rs`
//! remembers which threads to look after, `operations.rs` which answers of the database are awaited.

mod follows;
mod operations;
mod requests;
mod routing;
mod session;
mod threads;

use std::collections::BTreeMap;

use crate::message::{Action, Input, NodeId, RequestKey, Thread};
use crate::settings::Settings;
use follows::Follows;
use operations::Operations;
use requests::Pending;
use session::SessionState;
use threads::{Lease, ThreadState};

/// One node. Give it every input in the order in which they happen, and a [`Input::Tick`] at least as often as
/// [`Node::next_tick`] asks for one.
pub struct Node {
    id: NodeId,
    settings: Settings,
    session: SessionState,
    /// Sessions that were begun.
    sessions: u64,
    draining: bool,
    drained: bool,
    /// The threads that something is to be done about.
    threads: BTreeMap<Thread, ThreadState>,
    follows: Follows,
    requests: BTreeMap<RequestKey, Pending>,
    /// Requests that have come in: they are numbered.
    arrivals: u64,
    operations: Operations,
    actions: Vec<Action>,
}

impl Node {
    /// A node that has just started. `id` is of this start only.
    pub fn new(id: NodeId, settings: Settings) -> Self {
        Self {
            id,
            settings,
            session: SessionState::None { retry_at: 0 },
            sessions: 0,
            draining: false,
            drained: false,
            threads: BTreeMap::new(),
            follows: Follows::default(),
            requests: BTreeMap::new(),
            arrivals: 0,
            operations: Operations::default(),
            actions: Vec::new(),
        }
    }

    /// Takes an input at a time of the node's own clock, which never goes back, and returns what is to be done, in order.
    ///
    /// A session that has outlived its lifetime by that clock is given up before the input counts, so that a node that
    /// was paused does nothing on behalf of a lease that others may have taken.
    pub fn handle(&mut self, now: u64, input: Input) -> Vec<Action> {
        self.give_up_expired(now);
        match input {
            Input::Tick => self.tick(now),
            Input::Request { key, thread, need, repeatable } => self.request(now, key, thread, need, repeatable),
            Input::Finished { key } => self.finished(now, key),
            Input::Loaded { thread } => self.loaded(now, thread),
            Input::Unloaded { thread } => self.unloaded(now, thread),
            Input::Follow { thread } if !self.draining => self.follows.add(thread, now),
            Input::Follow { .. } => {}
            Input::Unfollow { thread } => self.follows.remove(thread),
            Input::Abandoned { thread } => self.abandoned(now, thread),
            Input::Peer { from, message } => self.peer(now, from, message),
            Input::Lost { node } => self.lost(now, node),
            Input::LostRequest { key } => self.lost_request(now, key),
            Input::Db { op, reply } => {
                if let Some(request) = self.operations.answered(op) {
                    self.answered(now, op, request, Some(reply));
                }
            }
            Input::Drain => self.drain(now),
        }
        self.keep_session(now);
        self.poll_followed(now);
        self.finish_drain(now);
        std::mem::take(&mut self.actions)
    }

    /// When the node wants to be called again, at the latest.
    pub fn next_tick(&self, now: u64) -> u64 {
        let next = now.saturating_add(self.settings.retry);
        self.live_until().filter(|until| *until > now).map_or(next, |until| next.min(until))
    }

    /// The threads that this node may work on at a time of its clock.
    pub fn running(&self, now: u64) -> Vec<Thread> {
        let owned = self.threads.iter().filter(|(_, state)| matches!(state.lease, Lease::Owned(_)));
        if self.is_live(now) { owned.map(|(thread, _)| *thread).collect() } else { Vec::new() }
    }

    /// The epoch under which this node owns a thread, as of the last input. It may be used before
    /// [`Node::live_until`] only.
    pub fn owned(&self, thread: Thread) -> Option<u64> {
        match &self.threads.get(&thread)?.lease {
            Lease::Owned(owned) => Some(owned.epoch),
            _ => None,
        }
    }

    /// Requests that are not answered yet.
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// Whether the node has let everything go.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    fn tick(&mut self, now: u64) {
        self.give_up_operations(now);
        self.give_up_requests(now);
        self.work_on_all(now);
    }

    fn work_on_all(&mut self, now: u64) {
        let threads: Vec<Thread> = self.threads.keys().copied().collect();
        for thread in threads {
            self.work_on(now, thread);
        }
    }

    fn drain(&mut self, now: u64) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.follows = Follows::default();
        for (thread, state) in &mut self.threads {
            state.forget_wants();
            if matches!(state.lease, Lease::Owned(_)) {
                self.actions.push(Action::LetGo { thread: *thread });
            }
        }
        self.work_on_all(now);
    }
}

//! One node's part of the protocol. `session.rs` keeps its session, `requests.rs` brings requests to the owner of their
//! thread, `threads.rs` takes, uses and lets go of leases.

mod requests;
mod session;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{Action, DbOp, DbReply, Input, NodeId, OpId, RequestKey, Thread};
use crate::settings::Settings;
use requests::Pending;
use session::SessionState;
use threads::Owned;

/// One node. Give it every input in the order in which they happen, and a [`Input::Tick`] at least as often as
/// [`Node::next_tick`] asks for one.
pub struct Node {
    id: NodeId,
    settings: Settings,
    session: SessionState,
    sessions: u32,
    draining: bool,
    drained: bool,
    threads: BTreeMap<Thread, ThreadState>,
    /// The threads that clients here follow, and when each is looked at again.
    followed: BTreeMap<Thread, u64>,
    requests: BTreeMap<RequestKey, Pending>,
    ops: BTreeMap<OpId, InFlight>,
    next_op: u64,
    actions: Vec<Action>,
}

/// What a node knows of a thread that it works on.
enum ThreadState {
    /// The lease is being taken.
    Taking,
    /// A draining node looks for the owner.
    Looking,
    Owned(Owned),
    /// The lease is being let go. Nothing runs on the thread any more.
    Releasing {
        token: u64,
        sent: bool,
    },
}

/// An operation that was sent to the database.
struct InFlight {
    request: DbOp,
    sent: u64,
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
            followed: BTreeMap::new(),
            requests: BTreeMap::new(),
            ops: BTreeMap::new(),
            next_op: 0,
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
            Input::Tick => {}
            Input::Request { key, thread } => self.request(now, key, thread),
            Input::Follow { thread } => {
                self.followed.entry(thread).or_insert(now);
            }
            Input::Unfollow { thread } => {
                self.followed.remove(&thread);
            }
            Input::Peer { from, message } => self.peer(now, from, message),
            Input::Db { op, reply } => {
                // An answer that comes too late was counted as unknown.
                if let Some(sent) = self.ops.remove(&op) {
                    self.answered(now, sent, Some(reply));
                }
            }
            Input::Drain => self.draining = true,
        }
        self.advance(now);
        std::mem::take(&mut self.actions)
    }

    /// When the node wants to be called again, at the latest.
    pub fn next_tick(&self, now: u64) -> u64 {
        now + self.settings.retry
    }

    /// The threads that this node may work on at a time of its clock.
    pub fn running(&self, now: u64) -> Vec<Thread> {
        let owned = self.threads.iter().filter(|(_, state)| matches!(state, ThreadState::Owned(_)));
        if self.is_live(now) { owned.map(|(thread, _)| *thread).collect() } else { Vec::new() }
    }

    /// Requests that are not answered yet.
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// Whether the node has let everything go.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    fn advance(&mut self, now: u64) {
        self.give_up_operations(now);
        self.keep_session(now);
        self.give_up_requests(now);
        self.route_waiting(now);
        self.look_after_followed(now);
        let threads: BTreeSet<Thread> = self.threads.keys().copied().collect();
        for thread in threads {
            self.work_on(now, thread);
        }
        self.finish_drain(now);
    }

    fn send_op(&mut self, now: u64, request: DbOp) -> OpId {
        let op = OpId(self.next_op);
        self.next_op += 1;
        self.ops.insert(op, InFlight { request: request.clone(), sent: now });
        self.actions.push(Action::Db { op, request });
        op
    }

    /// Counts operations without an answer as unknown.
    fn give_up_operations(&mut self, now: u64) {
        let late: Vec<OpId> = self
            .ops
            .iter()
            .filter(|(_, sent)| now >= sent.sent + self.settings.db_timeout)
            .map(|(op, _)| *op)
            .collect();
        for op in late {
            if let Some(sent) = self.ops.remove(&op) {
                self.answered(now, sent, None);
            }
        }
    }

    /// The answer to an operation; `None` when it is unknown whether it was done.
    fn answered(&mut self, now: u64, sent: InFlight, reply: Option<DbReply>) {
        match sent.request {
            DbOp::Register { session } => self.registered(now, session, sent.sent, reply),
            DbOp::Renew { session } => self.renewed(now, session, sent.sent, reply),
            DbOp::End { .. } => self.ended(),
            DbOp::Take { thread, session } => self.taken(now, thread, session, reply),
            DbOp::Lookup { thread } => self.looked_up(now, thread, reply),
            DbOp::Append { thread, token, keys } => self.appended(now, thread, token, &keys, reply),
            DbOp::Release { thread, token } => self.released(now, thread, token, reply),
        }
    }
}

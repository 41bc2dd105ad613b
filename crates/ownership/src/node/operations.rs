//! The operations that were sent to the database, and what their answers mean.

use std::collections::{BTreeMap, BTreeSet};

use super::Node;
use crate::message::{Action, DbOp, DbReply, OpId};

#[derive(Default)]
pub(super) struct Operations {
    in_flight: BTreeMap<OpId, InFlight>,
    /// Those that only look whether a followed thread has an owner.
    polls: BTreeSet<OpId>,
    next: u64,
}

struct InFlight {
    sent: u64,
    request: DbOp,
    /// It was counted as unknown. A take that is answered nevertheless is not forgotten.
    late: bool,
}

/// What an answer is about.
pub(super) struct Sent {
    pub request: DbOp,
    pub at: u64,
}

impl Operations {
    pub fn polls(&self) -> usize {
        self.polls.len()
    }

    /// What the next operation is called.
    pub fn next_id(&self) -> OpId {
        OpId(self.next)
    }

    pub fn answered(&mut self, op: OpId) -> Option<Sent> {
        self.polls.remove(&op);
        self.in_flight.remove(&op).map(|sent| Sent { request: sent.request, at: sent.sent })
    }
}

impl Node {
    pub(super) fn send_op(&mut self, now: u64, request: DbOp) -> OpId {
        let op = self.operations.next_id();
        self.operations.next += 1;
        self.operations.in_flight.insert(op, InFlight { sent: now, request: request.clone(), late: false });
        self.actions.push(Action::Db { op, request });
        op
    }

    /// Sends a look at a followed thread, which counts until it is answered.
    pub(super) fn send_poll(&mut self, now: u64, request: DbOp) -> OpId {
        let op = self.send_op(now, request);
        self.operations.polls.insert(op);
        op
    }

    /// Counts operations without an answer as unknown.
    pub(super) fn give_up_operations(&mut self, now: u64) {
        let (timeout, forgotten) = (self.settings.db_timeout, self.settle_time());
        let late: Vec<OpId> = self
            .operations
            .in_flight
            .iter()
            .filter(|(_, sent)| now >= sent.sent + if sent.late { forgotten } else { timeout })
            .map(|(op, _)| *op)
            .collect();
        for op in late {
            let Some(sent) = self.operations.in_flight.get_mut(&op) else { continue };
            if !sent.late && matches!(sent.request, DbOp::Take { .. }) {
                sent.late = true;
                let sent = Sent { request: sent.request.clone(), at: sent.sent };
                self.answered(now, op, sent, None);
            } else if let Some(known) = self.operations.answered(op) {
                // A late take has been counted as unknown before.
                if !matches!(known.request, DbOp::Take { .. }) {
                    self.answered(now, op, known, None);
                }
            }
        }
    }

    /// The answer to an operation; `None` when it is unknown whether it was done.
    pub(super) fn answered(&mut self, now: u64, op: OpId, sent: Sent, reply: Option<DbReply>) {
        match sent.request {
            DbOp::Register { session } => self.registered(now, session, sent.at, reply),
            DbOp::Renew { session } => self.renewed(now, session, sent.at, reply),
            DbOp::End { .. } => self.ended(),
            DbOp::Take { thread, session } => self.taken(now, op, thread, session, reply),
            DbOp::Lookup { thread } => self.looked_up(now, op, thread, reply),
            DbOp::Release { thread, .. } => self.released(now, op, thread, reply),
        }
    }

    /// How long a take of unknown outcome may still come to the database, as far as this node looks after it.
    pub(super) fn settle_time(&self) -> u64 {
        self.settings.session_ttl.saturating_mul(4)
    }
}

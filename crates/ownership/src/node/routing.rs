//! Where the requests in a thread's queue go: to the thread here, to its owner elsewhere, or back.

use super::Node;
use super::requests::Progress;
use super::threads::{Lease, ThreadState, Want};
use crate::message::{Action, Answer, DbOp, DbReply, Need, NodeId, OpId, PeerMessage, RequestKey, Session, Thread};

impl Node {
    /// Looks for the owner of a thread that this node does not own, when something needs it: the first request of the
    /// queue decides how.
    pub(super) fn look(&mut self, now: u64, thread: Thread) {
        let session = self.live_session(now);
        let draining = self.draining;
        let Some(state) = self.threads.get_mut(&thread) else { return };
        if session.is_none() || draining {
            state.forget_wants();
        }
        state.recheck(now, self.settings.follow_poll);
        if state.is_idle() {
            self.threads.remove(&thread);
            return;
        }
        if now < state.next_try {
            return;
        }
        let first = state.queue.values().next().and_then(|key| self.requests.get(key)).map(|pending| pending.need);
        let lookup = DbOp::Lookup { thread };
        match (first, state.want, session) {
            (Some(Need::Owner), _, _) if draining => self.ask(now, thread, lookup),
            (Some(Need::Owner), _, Some(session)) | (None, Want::Take, Some(session)) => {
                self.ask(now, thread, DbOp::Take { thread, session });
            }
            // It waits for a session.
            (Some(Need::Owner), _, None) => self.refuse_peers(thread),
            (Some(Need::OwnerIfAny), _, _) => self.ask(now, thread, lookup),
            (None, Want::TakeIfFree, _) => {
                let op = self.send_poll(now, lookup);
                self.await_answer(thread, op);
            }
            (None, Want::Know, _) => self.ask(now, thread, lookup),
            (None, Want::Nothing | Want::Take, _) => {}
        }
    }

    pub(super) fn ask(&mut self, now: u64, thread: Thread, request: DbOp) {
        let op = self.send_op(now, request);
        self.await_answer(thread, op);
    }

    fn await_answer(&mut self, thread: Thread, op: OpId) {
        let before = self.arrivals;
        if let Some(state) = self.threads.get_mut(&thread) {
            state.lease = Lease::Asking { op, before };
        }
    }

    pub(super) fn looked_up(&mut self, now: u64, op: OpId, thread: Thread, reply: Option<DbReply>) {
        let live = self.live_session(now);
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let Lease::Asking { op: asked, before } = state.lease else { return };
        if asked != op {
            return;
        }
        state.lease = Lease::None;
        let want = std::mem::take(&mut state.want);
        match reply {
            Some(DbReply::Held { session }) if session.node != self.id => self.held(now, thread, session),
            // The answer to a take was lost: it is taken again, and let go if nothing needs it.
            Some(DbReply::Held { session }) if Some(session) == live && !self.draining => {
                state.want = want;
                self.ask(now, thread, DbOp::Take { thread, session });
            }
            // A session that this node has given up does nothing any more.
            Some(DbReply::Held { .. } | DbReply::Free) => {
                if want >= Want::TakeIfFree {
                    state.want = Want::Take;
                }
                self.not_owned(now, thread, before);
                self.work_on(now, thread);
            }
            _ => {
                if want == Want::Take {
                    state.want = want;
                }
                self.try_later(now, thread);
            }
        }
    }

    /// Nobody owns the thread: what does not need an owner is done here, up to the first request that does. Only requests
    /// that came `before` the look count, as others may follow something that it did not see.
    fn not_owned(&mut self, now: u64, thread: Thread, before: u64) {
        if self.draining {
            self.refuse_peers(thread);
        }
        while let Some((arrival, key)) = self.first(thread)
            && arrival < before
        {
            let need = self.requests.get(&key).map(|pending| pending.need);
            match need {
                Some(Need::OwnerIfAny) => {
                    self.refuse_peers_of(key);
                    if self.requests.contains_key(&key) && !self.run(now, thread, key, None) {
                        self.try_later(now, thread);
                        return;
                    }
                }
                _ if self.draining => self.end(key, Answer::Moved),
                _ => return,
            }
        }
    }

    fn first(&self, thread: Thread) -> Option<(u64, RequestKey)> {
        self.threads.get(&thread)?.queue.first_key_value().map(|(arrival, key)| (*arrival, *key))
    }

    /// Runs what waits for the owner, which is this node.
    pub(super) fn run_queue(&mut self, now: u64, thread: Thread, epoch: u64) {
        while let Some((_, key)) = self.first(thread) {
            if !self.run(now, thread, key, Some(epoch)) {
                return;
            }
        }
    }

    /// Runs the first request of the queue here, unless it must wait.
    fn run(&mut self, now: u64, thread: Thread, key: RequestKey, epoch: Option<u64>) -> bool {
        if self.must_wait(now, thread, key, None) {
            return false;
        }
        let (Some(state), Some(pending)) = (self.threads.get_mut(&thread), self.requests.get_mut(&key)) else {
            return false;
        };
        state.queue.remove(&pending.arrival);
        pending.progress = Progress::Running;
        if epoch.is_some() {
            state.runs.insert(key);
        }
        self.actions.push(Action::Run { key, thread, epoch });
        true
    }

    /// Another session has the lease: the requests of this node's clients go to its node.
    pub(super) fn held(&mut self, now: u64, thread: Thread, holder: Session) {
        self.refuse_peers(thread);
        if holder.node == self.id {
            // This node has given that session up. It expires.
            self.try_later(now, thread);
            return;
        }
        while let Some((_, key)) = self.first(thread) {
            if self.must_wait(now, thread, key, Some(holder.node)) {
                self.try_later(now, thread);
                return;
            }
            self.forward(now, thread, key, holder.node);
        }
        self.work_on(now, thread);
    }

    fn forward(&mut self, now: u64, thread: Thread, key: RequestKey, to: NodeId) {
        let (Some(state), Some(pending)) = (self.threads.get_mut(&thread), self.requests.get_mut(&key)) else { return };
        let deadline = match pending.progress {
            Progress::Looking { deadline } => deadline,
            Progress::Running | Progress::Forwarded { .. } => now,
        };
        state.queue.remove(&pending.arrival);
        state.forwarded.insert(pending.arrival, (key, to));
        pending.progress = Progress::Forwarded { left: deadline.saturating_sub(now) };
        let message = PeerMessage::Forward { key, thread, need: pending.need, repeatable: pending.repeatable };
        self.actions.push(Action::Send { to, message });
    }

    /// Whether a request waits because another node than the one it would go to still has requests of the thread. That
    /// node has lost the thread and answers soon, so the wait is short, and bounded.
    fn must_wait(&mut self, now: u64, thread: Thread, key: RequestKey, to: Option<NodeId>) -> bool {
        let (Some(state), Some(pending)) = (self.threads.get(&thread), self.requests.get(&key)) else { return false };
        let elsewhere = |state: &ThreadState| state.forwarded.values().any(|(_, node)| Some(*node) != to);
        if !pending.from_client || pending.held_until.is_some_and(|until| now >= until) || !elsewhere(state) {
            return false;
        }
        let until = now + self.settings.order_timeout;
        for key in state.queue.values() {
            if let Some(pending) = self.requests.get_mut(key) {
                pending.held_until.get_or_insert(until);
            }
        }
        true
    }

    /// Looks for the owner again after a pause. Requests of other nodes go back: they look for themselves.
    pub(super) fn try_later(&mut self, now: u64, thread: Thread) {
        self.refuse_peers(thread);
        if let Some(state) = self.threads.get_mut(&thread) {
            state.next_try = state.next_try.max(now + self.settings.retry);
            if state.is_idle() {
                self.threads.remove(&thread);
            }
        }
    }
}

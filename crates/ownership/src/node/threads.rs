//! Leases: taken when a request or a follower needs the thread, kept while it is loaded or used, let go after it has
//! stopped.

use std::collections::{BTreeMap, BTreeSet};

use super::Node;
use crate::message::{Action, Answer, DbOp, DbReply, Need, NodeId, OpId, RequestKey, Session, Thread};

/// What a node knows of a thread that something is to be done about.
#[derive(Default)]
pub(super) struct ThreadState {
    pub lease: Lease,
    /// The requests that look for the owner, by their number.
    pub queue: BTreeMap<u64, RequestKey>,
    /// The requests that run under the lease.
    pub runs: BTreeSet<RequestKey>,
    /// The requests that another node has, by their number.
    pub forwarded: BTreeMap<u64, (RequestKey, NodeId)>,
    /// What is to be found out or done apart from requests.
    pub want: Want,
    /// Nothing is asked before.
    pub next_try: u64,
    unsettled: Option<Unsettled>,
}

#[derive(Default)]
pub(super) enum Lease {
    /// It is not this node's, as far as that is known.
    #[default]
    None,
    /// The database was asked for the lease or its holder, when requests with numbers below `before` had come.
    Asking {
        op: OpId,
        before: u64,
    },
    Owned(Owned),
    /// It is being let go. Nothing runs on the thread any more. `op` is `None` until it is sent again.
    Releasing {
        session: Session,
        epoch: u64,
        op: Option<OpId>,
    },
}

/// A lease that is this node's.
pub(super) struct Owned {
    session: Session,
    pub epoch: u64,
    /// Whether the executor has loaded the thread, or was told to.
    loaded: bool,
}

/// What is wanted of a thread apart from requests; more includes less.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    #[default]
    Nothing,
    /// Whether the lease is this node's without its knowing.
    Know,
    TakeIfFree,
    Take,
}

/// A take whose outcome is unknown: it may be done later than a look that does not find it.
struct Unsettled {
    next_look: u64,
    until: u64,
}

impl ThreadState {
    pub fn forget_wants(&mut self) {
        (self.want, self.unsettled) = (Want::Nothing, None);
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.lease, Lease::None)
            && self.queue.is_empty()
            && self.forwarded.is_empty()
            && self.want == Want::Nothing
            && self.unsettled.is_none()
    }

    /// Wants a look when one is due because of a take of unknown outcome.
    pub fn recheck(&mut self, now: u64, pause: u64) {
        let Some(unsettled) = &mut self.unsettled else { return };
        if now < unsettled.next_look {
            return;
        }
        unsettled.next_look = now + pause;
        self.want = self.want.max(Want::Know);
        if now >= unsettled.until {
            self.unsettled = None;
        }
    }
}

impl Node {
    /// Does the next thing on a thread.
    pub(super) fn work_on(&mut self, now: u64, thread: Thread) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        match &mut state.lease {
            Lease::None => self.look(now, thread),
            Lease::Asking { .. } => {}
            Lease::Owned(_) => self.use_lease(now, thread),
            Lease::Releasing { session, epoch, op: op @ None } if now >= state.next_try => {
                let request = DbOp::Release { thread, session: *session, epoch: *epoch };
                // The operation has its number before it is sent, so that the borrow of the state ends here.
                *op = Some(self.operations.next_id());
                self.send_op(now, request);
            }
            Lease::Releasing { .. } => {}
        }
    }

    /// Runs what waits, and lets the lease go when nothing needs it. A draining node runs requests only on threads that
    /// are still loaded.
    fn use_lease(&mut self, now: u64, thread: Thread) {
        let Some(Lease::Owned(owned)) = self.threads.get(&thread).map(|state| &state.lease) else { return };
        let (epoch, session, loaded) = (owned.epoch, owned.session, owned.loaded);
        if loaded || !self.draining {
            self.run_queue(now, thread, epoch);
        } else {
            self.refuse_peers(thread);
            self.end_owner_requests(thread);
        }
        let draining = self.draining;
        let Some(state) = self.threads.get_mut(&thread) else { return };
        if !loaded && state.runs.is_empty() && (state.queue.is_empty() || draining) {
            // The thread stops before others may take it.
            self.actions.push(Action::Stop { thread });
            state.lease = Lease::Releasing { session, epoch, op: None };
            self.work_on(now, thread);
        }
    }

    /// Ends what waits to load a thread that this node lets go, while a request runs on it: that one may be waiting for it.
    fn end_owner_requests(&mut self, thread: Thread) {
        let Some(state) = self.threads.get(&thread).filter(|state| !state.runs.is_empty()) else { return };
        let needs_owner = |key: &RequestKey| self.requests.get(key).is_some_and(|pending| pending.need == Need::Owner);
        let waiting: Vec<RequestKey> = state.queue.values().copied().filter(needs_owner).collect();
        for key in waiting {
            self.end(key, Answer::Moved);
        }
    }

    /// The answer to a take.
    pub(super) fn taken(&mut self, now: u64, op: OpId, thread: Thread, session: Session, reply: Option<DbReply>) {
        let is_current = self.live_session(now) == Some(session);
        let state = self.threads.get_mut(&thread);
        let is_awaited =
            state.is_some_and(|state| matches!(state.lease, Lease::Asking { op: asked, .. } if asked == op));
        match reply {
            Some(DbReply::Taken { epoch }) if is_current && is_awaited => self.own(now, thread, session, epoch),
            Some(DbReply::Taken { epoch }) if is_current => self.taken_late(now, thread, session, epoch),
            Some(DbReply::NoSession) if is_current => self.lose_session(now),
            _ if !is_awaited => {}
            // The session was given up meanwhile, and everything with it.
            _ if !is_current => self.leave(now, thread),
            Some(DbReply::Held { session: holder }) => {
                self.not_taken(thread, Want::Nothing);
                self.held(now, thread, holder);
            }
            Some(_) => {
                self.not_taken(thread, Want::Nothing);
                self.try_later(now, thread);
            }
            None => {
                self.unsettle(now, thread);
                let want = self.threads.get(&thread).map_or(Want::Know, |state| state.want.max(Want::Know));
                self.not_taken(thread, want);
                self.try_later(now, thread);
            }
        }
    }

    fn not_taken(&mut self, thread: Thread, want: Want) {
        if let Some(state) = self.threads.get_mut(&thread) {
            (state.lease, state.want) = (Lease::None, want);
        }
    }

    /// The lease is this node's.
    fn own(&mut self, now: u64, thread: Thread, session: Session, epoch: u64) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        if self.draining {
            state.lease = Lease::Releasing { session, epoch, op: None };
        } else {
            let taken_over = std::mem::take(&mut state.want) >= Want::TakeIfFree;
            state.lease = Lease::Owned(Owned { session, epoch, loaded: taken_over });
            self.actions.push(Action::Own { thread, epoch, taken_over });
        }
        self.work_on(now, thread);
    }

    /// A take that was counted as unknown has been done. An owner under an earlier epoch can no longer append: it stops,
    /// and goes on under the new epoch.
    fn taken_late(&mut self, now: u64, thread: Thread, session: Session, taken: u64) {
        let state = self.threads.entry(thread).or_default();
        match state.lease {
            Lease::Owned(Owned { epoch, .. }) if epoch >= taken => {}
            Lease::Owned(Owned { loaded, .. }) => {
                state.want = if loaded { Want::Take } else { Want::Nothing };
                state.runs.clear();
                self.actions.push(Action::Stop { thread });
                self.own(now, thread, session, taken);
            }
            _ => {
                self.unsettle(now, thread);
                self.work_on(now, thread);
            }
        }
    }

    /// Looks for a while whether a take of unknown outcome was done after all.
    fn unsettle(&mut self, now: u64, thread: Thread) {
        let until = now + self.settle_time();
        if !self.draining
            && let Some(state) = self.threads.get_mut(&thread)
        {
            state.unsettled = Some(Unsettled { next_look: now, until });
        }
    }

    pub(super) fn released(&mut self, now: u64, op: OpId, thread: Thread, reply: Option<DbReply>) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        match &mut state.lease {
            Lease::Releasing { op: sent, .. } if *sent == Some(op) => *sent = None,
            _ => return,
        }
        // It is sent again when it is unknown whether it was done.
        if matches!(reply, None | Some(DbReply::Failed)) {
            state.next_try = state.next_try.max(now + self.settings.retry);
        } else {
            state.lease = Lease::None;
        }
        self.work_on(now, thread);
    }

    /// The thread is not this node's any more. Its requests that do not run look for the next owner.
    pub(super) fn leave(&mut self, now: u64, thread: Thread) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let lease = std::mem::take(&mut state.lease);
        state.runs.clear();
        state.forget_wants();
        if matches!(lease, Lease::Owned(_)) {
            self.actions.push(Action::Stop { thread });
        }
        self.try_later(now, thread);
    }

    pub(super) fn loaded(&mut self, now: u64, thread: Thread) {
        let draining = self.draining;
        if let Some(ThreadState { lease: Lease::Owned(owned), .. }) = self.threads.get_mut(&thread) {
            owned.loaded = true;
            if draining {
                self.actions.push(Action::LetGo { thread });
            }
            self.work_on(now, thread);
        }
    }

    pub(super) fn unloaded(&mut self, now: u64, thread: Thread) {
        if let Some(ThreadState { lease: Lease::Owned(owned), .. }) = self.threads.get_mut(&thread) {
            owned.loaded = false;
            // What cannot be loaded here is not taken over again at once: another node may be able to.
            self.follows.postpone(thread, now + self.settings.session_ttl);
            self.work_on(now, thread);
        }
    }

    pub(super) fn abandoned(&mut self, now: u64, thread: Thread) {
        if self.draining || !self.is_live(now) {
            return;
        }
        let state = self.threads.entry(thread).or_default();
        if matches!(state.lease, Lease::None | Lease::Asking { .. }) {
            state.want = Want::Take;
            self.work_on(now, thread);
        }
    }
}

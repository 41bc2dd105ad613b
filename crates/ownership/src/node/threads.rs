//! Leases: taken when a request or a follower needs the thread, used for appends, let go by a draining node.

use std::collections::BTreeMap;

use super::requests::RequestState;
use super::{Node, ThreadState};
use crate::message::{Action, Answer, DbOp, DbReply, RequestKey, Session, Thread};

/// A thread that this node owns.
pub(super) struct Owned {
    token: u64,
    epoch: u64,
    /// The requests whose records the thread has.
    done: BTreeMap<RequestKey, u64>,
    /// Whether an append is on its way: there is one at a time.
    busy: bool,
}

impl Node {
    /// Takes the lease of a thread, or finds its owner.
    pub(super) fn seek(&mut self, now: u64, thread: Thread) {
        let Some(session) = self.live_session(now) else {
            // Without a session the requests wait for one.
            self.requeue(now, thread);
            return;
        };
        if self.draining {
            self.threads.insert(thread, ThreadState::Looking);
            self.send_op(now, DbOp::Lookup { thread });
        } else {
            self.threads.insert(thread, ThreadState::Taking);
            self.send_op(now, DbOp::Take { thread, session });
        }
    }

    pub(super) fn taken(&mut self, now: u64, thread: Thread, session: Session, reply: Option<DbReply>) {
        let is_current = self.live_session(now) == Some(session);
        if !is_current || !matches!(self.threads.get(&thread), Some(ThreadState::Taking)) {
            return;
        }
        match reply {
            Some(DbReply::Taken { token, epoch, done }) => {
                let done = done.into_iter().collect();
                self.threads.insert(thread, ThreadState::Owned(Owned { token, epoch, done, busy: false }));
                self.actions.push(Action::Own { thread, epoch });
            }
            Some(DbReply::Held { holder }) => {
                self.threads.remove(&thread);
                self.forward(now, thread, holder.session.node);
            }
            Some(DbReply::NoSession) => self.lose_session(now),
            _ => self.leave(now, thread),
        }
    }

    pub(super) fn looked_up(&mut self, now: u64, thread: Thread, reply: Option<DbReply>) {
        if !matches!(self.threads.get(&thread), Some(ThreadState::Looking)) {
            return;
        }
        match reply {
            Some(DbReply::Held { holder }) if holder.session.node != self.id => {
                self.threads.remove(&thread);
                self.forward(now, thread, holder.session.node);
            }
            _ => self.leave(now, thread),
        }
    }

    /// Works no longer on a thread.
    fn leave(&mut self, now: u64, thread: Thread) {
        if let Some(ThreadState::Owned(_)) = self.threads.remove(&thread) {
            self.actions.push(Action::Stop { thread });
        }
        self.requeue(now, thread);
    }

    /// Does the next thing on a thread: appends what waits, or lets it go. A thread stops before its lease is let go.
    pub(super) fn work_on(&mut self, now: u64, thread: Thread) {
        if !self.is_live(now) {
            return;
        }
        if let Some(ThreadState::Owned(Owned { token, busy: false, .. })) = self.threads.get(&thread)
            && self.draining
        {
            let state = ThreadState::Releasing { token: *token, sent: false };
            self.threads.insert(thread, state);
            self.actions.push(Action::Stop { thread });
        }
        if let Some(ThreadState::Releasing { token, sent: sent @ false }) = self.threads.get_mut(&thread) {
            *sent = true;
            let token = *token;
            self.send_op(now, DbOp::Release { thread, token });
            return;
        }
        let Some(ThreadState::Owned(owned)) = self.threads.get_mut(&thread) else { return };
        if owned.busy {
            return;
        }
        let here = |state: RequestState| state == RequestState::Here;
        let waiting: Vec<RequestKey> = self
            .requests
            .iter()
            .filter(|(_, pending)| pending.thread == thread && here(pending.state))
            .map(|(key, _)| *key)
            .collect();
        let (done, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|key| owned.done.contains_key(key));
        let done: Vec<(RequestKey, u64)> =
            done.into_iter().filter_map(|key| Some((key, *owned.done.get(&key)?))).collect();
        let token = owned.token;
        let keys: Vec<RequestKey> = waiting.into_iter().take(self.settings.max_batch).collect();
        if !keys.is_empty() {
            owned.busy = true;
            self.send_op(now, DbOp::Append { thread, token, keys });
        }
        for (key, seq) in done {
            self.answer(key, Answer::Done { seq });
        }
    }

    pub(super) fn appended(
        &mut self,
        now: u64,
        thread: Thread,
        token: u64,
        keys: &[RequestKey],
        reply: Option<DbReply>,
    ) {
        let Some(ThreadState::Owned(owned)) = self.threads.get_mut(&thread) else { return };
        if owned.token != token {
            return;
        }
        owned.busy = false;
        let epoch = owned.epoch;
        match reply {
            Some(DbReply::Appended { first }) => {
                let records: Vec<(RequestKey, u64)> = keys.iter().copied().zip(first..).collect();
                owned.done.extend(records.iter().copied());
                for (key, seq) in records {
                    self.actions.push(Action::Show { thread, epoch, seq, key });
                    self.answer(key, Answer::Done { seq });
                }
            }
            // Nothing was done.
            Some(DbReply::Failed) => {}
            Some(_) => self.leave(now, thread),
            // The append may come to the database later. A new token keeps it out, and tells what was done.
            None => {
                self.actions.push(Action::Stop { thread });
                self.threads.remove(&thread);
                self.seek(now, thread);
            }
        }
    }

    pub(super) fn released(&mut self, now: u64, thread: Thread, token: u64, reply: Option<DbReply>) {
        match self.threads.get_mut(&thread) {
            Some(ThreadState::Releasing { token: own, sent }) if *own == token => *sent = false,
            _ => return,
        }
        // It is sent again when it is unknown whether it was done.
        if matches!(reply, Some(DbReply::Ok | DbReply::Stale)) {
            self.leave(now, thread);
        }
    }

    /// Takes over the followed threads whose owners are gone.
    pub(super) fn look_after_followed(&mut self, now: u64) {
        if self.draining {
            self.followed.clear();
        }
        let due: Vec<Thread> = self.followed.iter().filter(|(_, at)| now >= **at).map(|(thread, _)| *thread).collect();
        for thread in due {
            self.followed.insert(thread, now + self.settings.follow_poll);
            if !self.threads.contains_key(&thread) && self.is_live(now) {
                self.seek(now, thread);
            }
        }
    }
}

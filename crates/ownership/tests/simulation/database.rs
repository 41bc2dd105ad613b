//! The database of a simulation: operations are atomic and in the order in which they arrive.

use std::collections::{BTreeMap, BTreeSet};

use loomd_ownership::{DbOp, DbReply, RequestKey, Session, Thread};

#[derive(Default)]
pub struct Database {
    /// When each session expires.
    sessions: BTreeMap<Session, u64>,
    pub threads: BTreeMap<Thread, Stored>,
    /// Requests whose clients were told that they were not done.
    pub refused: BTreeSet<RequestKey>,
}

#[derive(Default)]
pub struct Stored {
    pub holder: Option<Session>,
    epoch: u64,
    pub log: Vec<Record>,
    pub keys: BTreeMap<RequestKey, usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub key: RequestKey,
    pub epoch: u64,
    pub session: Session,
}

/// An executor's append of a request's record. A repeatable one is not appended twice.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    pub thread: Thread,
    pub record: Record,
    pub repeatable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The record is there, from now on or from before.
    Stored,
    /// The lease has another session or epoch; nothing was done.
    Stale,
}

impl Database {
    pub fn is_live(&self, session: Session, now: u64) -> bool {
        self.sessions.get(&session).is_some_and(|expires| *expires > now)
    }

    /// The live session that has a thread's lease.
    pub fn holder(&self, thread: Thread, now: u64) -> Option<Session> {
        self.threads.get(&thread)?.holder.filter(|session| self.is_live(*session, now))
    }

    pub fn apply(&mut self, now: u64, ttl: u64, request: &DbOp) -> DbReply {
        match request {
            DbOp::Register { session } => {
                self.sessions.insert(*session, now + ttl);
                DbReply::Ok
            }
            DbOp::Renew { session } if self.is_live(*session, now) => {
                self.sessions.insert(*session, now + ttl);
                DbReply::Ok
            }
            DbOp::Renew { .. } => DbReply::NoSession,
            DbOp::End { session } => {
                self.sessions.remove(session);
                DbReply::Ok
            }
            DbOp::Take { session, .. } if !self.is_live(*session, now) => DbReply::NoSession,
            DbOp::Take { thread, session } => match self.holder(*thread, now).filter(|holder| holder != session) {
                Some(session) => DbReply::Held { session },
                None => {
                    let stored = self.threads.entry(*thread).or_default();
                    stored.holder = Some(*session);
                    stored.epoch += 1;
                    DbReply::Taken { epoch: stored.epoch }
                }
            },
            DbOp::Lookup { thread } => match self.holder(*thread, now) {
                Some(session) => DbReply::Held { session },
                None => DbReply::Free,
            },
            DbOp::Release { thread, session, epoch } => {
                let stored = self.threads.entry(*thread).or_default();
                if (stored.holder, stored.epoch) == (Some(*session), *epoch) {
                    stored.holder = None;
                }
                DbReply::Ok
            }
        }
    }

    /// Appends, and fails when that breaks an invariant of the log.
    pub fn append(&mut self, append: &Append) -> Result<Appended, String> {
        let Append { thread, record, repeatable } = append;
        let stored = self.threads.entry(*thread).or_default();
        if (stored.holder, stored.epoch) != (Some(record.session), record.epoch) {
            return Ok(Appended::Stale);
        }
        if *repeatable && stored.keys.contains_key(&record.key) {
            return Ok(Appended::Stored);
        }
        if self.refused.contains(&record.key) {
            return Err(format!("{record:?} is done, and its client was told that it was not"));
        }
        if let Some(last) = stored.log.last() {
            if last.epoch > record.epoch {
                return Err(format!("{record:?} after {last:?}: the epoch went back"));
            }
            if last.epoch == record.epoch && last.session != record.session {
                return Err(format!("{record:?} after {last:?}: two owners in one epoch"));
            }
        }
        if stored.keys.insert(record.key, stored.log.len()).is_some() {
            return Err(format!("{record:?} was done twice"));
        }
        stored.log.push(*record);
        Ok(Appended::Stored)
    }
}

//! The database of a simulation: operations are atomic and in the order in which they arrive.

use std::collections::{BTreeMap, BTreeSet};

use loomd_ownership::{DbOp, DbReply, Holder, RequestKey, Session, Thread};

#[derive(Default)]
pub struct Database {
    /// When each session expires.
    sessions: BTreeMap<Session, u64>,
    pub threads: BTreeMap<Thread, Stored>,
    tokens: u64,
}

#[derive(Default)]
pub struct Stored {
    pub holder: Option<Session>,
    token: u64,
    epoch: u64,
    pub log: Vec<Record>,
    keys: BTreeSet<RequestKey>,
}

#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub key: RequestKey,
    pub epoch: u64,
    session: Session,
}

impl Database {
    pub fn is_live(&self, session: Session, now: u64) -> bool {
        self.sessions.get(&session).is_some_and(|expires| *expires > now)
    }

    /// Does an operation, and fails when that breaks an invariant of the log.
    pub fn apply(&mut self, now: u64, ttl: u64, request: &DbOp) -> Result<DbReply, String> {
        Ok(match request {
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
            DbOp::Take { thread, session } => {
                let holder = self.threads.get(thread).and_then(|stored| stored.holder);
                if let Some(holder) = holder.filter(|holder| holder != session && self.is_live(*holder, now)) {
                    return Ok(DbReply::Held { holder: Holder { session: holder } });
                }
                self.tokens += 1;
                let stored = self.threads.entry(*thread).or_default();
                (stored.holder, stored.token) = (Some(*session), self.tokens);
                stored.epoch += 1;
                let done = stored.log.iter().zip(0..).map(|(record, seq)| (record.key, seq)).collect();
                DbReply::Taken { token: stored.token, epoch: stored.epoch, done }
            }
            DbOp::Lookup { thread } => {
                let holder = self.threads.get(thread).and_then(|stored| stored.holder);
                match holder.filter(|holder| self.is_live(*holder, now)) {
                    Some(session) => DbReply::Held { holder: Holder { session } },
                    None => DbReply::Free,
                }
            }
            DbOp::Append { thread, token, keys } => {
                let stored = self.threads.entry(*thread).or_default();
                let Some(session) = stored.holder.filter(|_| stored.token == *token) else {
                    return Ok(DbReply::Stale);
                };
                let first = stored.log.len() as u64;
                for key in keys {
                    stored.append(Record { key: *key, epoch: stored.epoch, session })?;
                }
                DbReply::Appended { first }
            }
            DbOp::Release { thread, token } => {
                let stored = self.threads.entry(*thread).or_default();
                if stored.token != *token {
                    return Ok(DbReply::Stale);
                }
                stored.holder = None;
                DbReply::Ok
            }
        })
    }
}

impl Stored {
    fn append(&mut self, record: Record) -> Result<(), String> {
        if let Some(last) = self.log.last() {
            if last.epoch > record.epoch {
                return Err(format!("{record:?} after {last:?}: the epoch went back"));
            }
            if last.epoch == record.epoch && last.session != record.session {
                return Err(format!("{record:?} after {last:?}: two owners in one epoch"));
            }
        }
        if !self.keys.insert(record.key) {
            return Err(format!("{record:?} was done twice"));
        }
        self.log.push(record);
        Ok(())
    }
}

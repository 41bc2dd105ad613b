//! The session of a node: registered, renewed, given up in time, ended.

use super::Node;
use crate::message::{DbOp, DbReply, Session};

/// A node's session, as far as the node knows.
pub(super) enum SessionState {
    /// There is none; another is registered from `retry_at` on.
    None {
        retry_at: u64,
    },
    Registering,
    /// Counts until `until`. `renewed_at` is when the last renewal was sent, answered or not.
    Live {
        session: Session,
        until: u64,
        renewed_at: u64,
    },
    /// A drained node ends its session.
    Ending,
}

impl Node {
    /// Whether this node has a session that others count as live.
    pub fn is_live(&self, now: u64) -> bool {
        self.live_session(now).is_some()
    }

    /// The session of this node, as of the last input. Owned threads are leased to it.
    pub fn session(&self) -> Option<Session> {
        match self.session {
            SessionState::Live { session, .. } => Some(session),
            _ => None,
        }
    }

    /// When the session counts as expired by this node's clock, unless it is renewed before. `None` without a session.
    pub fn live_until(&self) -> Option<u64> {
        match self.session {
            SessionState::Live { until, .. } => Some(until),
            _ => None,
        }
    }

    /// The session that operations may be done for.
    pub(super) fn live_session(&self, now: u64) -> Option<Session> {
        match self.session {
            SessionState::Live { session, until, .. } if now < until => Some(session),
            _ => None,
        }
    }

    /// Gives up a session that others may count as expired from now on.
    pub(super) fn give_up_expired(&mut self, now: u64) {
        if matches!(self.session, SessionState::Live { until, .. } if now >= until) {
            self.lose_session(now);
        }
    }

    /// Stops all threads. Requests that do not run look for the next owner.
    pub(super) fn lose_session(&mut self, now: u64) {
        self.session = SessionState::None { retry_at: now };
        let threads: Vec<_> = self.threads.keys().copied().collect();
        for thread in threads {
            self.leave(now, thread);
        }
    }

    pub(super) fn keep_session(&mut self, now: u64) {
        match self.session {
            // A draining node needs none: it takes nothing.
            SessionState::None { retry_at } if now >= retry_at && !self.draining => {
                // Each try has a session of its own: one that is late is never mistaken for the next.
                let session = Session { node: self.id, number: self.sessions };
                self.sessions += 1;
                self.session = SessionState::Registering;
                self.send_op(now, DbOp::Register { session });
            }
            SessionState::Live { session, until, renewed_at } if now >= renewed_at + self.settings.renewal => {
                self.session = SessionState::Live { session, until, renewed_at: now };
                self.send_op(now, DbOp::Renew { session });
            }
            _ => {}
        }
    }

    pub(super) fn registered(&mut self, now: u64, session: Session, sent: u64, reply: Option<DbReply>) {
        if !matches!(self.session, SessionState::Registering) || session.number + 1 != self.sessions {
            return;
        }
        let until = self.lifetime(sent);
        self.session = match reply {
            Some(DbReply::Ok) if now < until => SessionState::Live { session, until, renewed_at: sent },
            _ => SessionState::None { retry_at: now + self.settings.retry },
        };
        if self.is_live(now) {
            self.work_on_all(now);
        }
    }

    pub(super) fn renewed(&mut self, now: u64, renewed: Session, sent: u64, reply: Option<DbReply>) {
        let lifetime = self.lifetime(sent);
        let SessionState::Live { session, until, renewed_at } = &mut self.session else { return };
        if *session != renewed {
            return;
        }
        match reply {
            Some(DbReply::Ok) => *until = (*until).max(lifetime),
            Some(DbReply::NoSession) => self.lose_session(now),
            _ => *renewed_at = (now + self.settings.retry).saturating_sub(self.settings.renewal),
        }
    }

    /// How long a session counts that was renewed by an operation sent at a time: the database has done it later.
    fn lifetime(&self, sent: u64) -> u64 {
        sent + self.settings.session_ttl.saturating_sub(self.settings.clock_margin)
    }

    /// Ends the session of a draining node that has let everything go.
    pub(super) fn finish_drain(&mut self, now: u64) {
        if !self.draining || self.drained || !self.threads.is_empty() || !self.requests.is_empty() {
            return;
        }
        match self.session {
            SessionState::Live { session, .. } => {
                self.session = SessionState::Ending;
                self.send_op(now, DbOp::End { session });
            }
            SessionState::None { .. } => self.ended(),
            SessionState::Registering | SessionState::Ending => {}
        }
    }

    /// Whether a draining node has nothing left to do, and takes nothing more.
    pub(super) fn is_over(&self) -> bool {
        self.drained || matches!(self.session, SessionState::Ending)
    }

    /// The session is over. Where its end is unknown, it expires.
    pub(super) fn ended(&mut self) {
        if !self.drained {
            self.drained = true;
            self.session = SessionState::None { retry_at: u64::MAX };
            self.actions.push(crate::Action::Drained);
        }
    }
}

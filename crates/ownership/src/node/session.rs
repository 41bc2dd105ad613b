//! The session of a node: registered, renewed, given up in time, ended.

use super::{Node, ThreadState};
use crate::message::{Action, DbOp, DbReply, Session};

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
    /// The session that operations may be done for.
    pub(super) fn live_session(&self, now: u64) -> Option<Session> {
        match self.session {
            SessionState::Live { session, until, .. } if now < until => Some(session),
            _ => None,
        }
    }

    pub(super) fn is_live(&self, now: u64) -> bool {
        self.live_session(now).is_some()
    }

    /// Gives up a session that others may count as expired from now on.
    pub(super) fn give_up_expired(&mut self, now: u64) {
        if matches!(self.session, SessionState::Live { until, .. } if now >= until) {
            self.lose_session(now);
        }
    }

    /// Stops all threads. Their requests look for the next owner.
    pub(super) fn lose_session(&mut self, now: u64) {
        self.session = SessionState::None { retry_at: now };
        for (thread, state) in std::mem::take(&mut self.threads) {
            if matches!(state, ThreadState::Owned(_)) {
                self.actions.push(Action::Stop { thread });
            }
            self.requeue(now, thread);
        }
    }

    pub(super) fn keep_session(&mut self, now: u64) {
        match self.session {
            SessionState::None { retry_at } if now >= retry_at && !self.drained => {
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
        let until = sent + self.settings.session_ttl;
        self.session = match reply {
            Some(DbReply::Ok) if now < until => SessionState::Live { session, until, renewed_at: sent },
            _ => SessionState::None { retry_at: now + self.settings.retry },
        };
    }

    pub(super) fn renewed(&mut self, now: u64, renewed: Session, sent: u64, reply: Option<DbReply>) {
        let SessionState::Live { session, until, renewed_at } = &mut self.session else { return };
        if *session != renewed {
            return;
        }
        match reply {
            // The lifetime counts from when the renewal was sent: the database has renewed it later than that.
            Some(DbReply::Ok) => *until = (*until).max(sent + self.settings.session_ttl),
            Some(DbReply::NoSession) => self.lose_session(now),
            _ => *renewed_at = (now + self.settings.retry).saturating_sub(self.settings.renewal),
        }
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

    /// The session is over. Where its end is unknown, it expires.
    pub(super) fn ended(&mut self) {
        if !self.drained {
            self.drained = true;
            self.session = SessionState::None { retry_at: u64::MAX };
            self.actions.push(Action::Drained);
        }
    }
}

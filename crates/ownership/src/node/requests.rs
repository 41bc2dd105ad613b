//! Requests: from a client or another node, to the thread here or to its owner elsewhere, and back.

use super::Node;
use crate::message::{Action, Answer, NodeId, PeerMessage, RequestKey, Thread};

/// A request that is not answered.
pub(super) struct Pending {
    pub thread: Thread,
    pub origins: Vec<Origin>,
    pub state: RequestState,
    /// When it is answered, done or not.
    deadline: u64,
}

/// Who is to be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Client,
    Peer(NodeId),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestState {
    /// Looks for the owner from then on.
    Waiting { from: u64 },
    /// Waits for what this node does with the thread.
    Here,
    /// Another node was asked.
    Forwarded { until: u64 },
}

impl Node {
    pub(super) fn request(&mut self, now: u64, key: RequestKey, thread: Thread) {
        if self.draining {
            self.actions.push(Action::Answer { key, answer: Answer::Moved });
            return;
        }
        self.add(now, key, thread, Origin::Client);
    }

    pub(super) fn peer(&mut self, now: u64, from: NodeId, message: PeerMessage) {
        match message {
            PeerMessage::Forward { key, thread } => {
                // The lease may be this node's without its knowing, when the answer to its take was lost. It is taken
                // again then; a request that another node sent is never sent on.
                if !self.draining && self.is_live(now) {
                    self.add(now, key, thread, Origin::Peer(from));
                } else {
                    self.actions.push(Action::Send { to: from, message: PeerMessage::NotOwner { key } });
                }
            }
            PeerMessage::Answered { key, answer } => match answer {
                Answer::Done { .. } => self.answer(key, answer),
                Answer::Moved | Answer::Unavailable | Answer::Busy => self.ask_again(now, key),
            },
            PeerMessage::NotOwner { key } => self.ask_again(now, key),
        }
    }

    fn add(&mut self, now: u64, key: RequestKey, thread: Thread, origin: Origin) {
        if let Some(pending) = self.requests.get_mut(&key) {
            if !pending.origins.contains(&origin) {
                pending.origins.push(origin);
            }
            return;
        }
        if self.requests.len() >= self.settings.max_requests {
            self.reply(key, origin, Answer::Busy);
            return;
        }
        let deadline = now + self.settings.request_timeout;
        let state = RequestState::Waiting { from: now };
        self.requests.insert(key, Pending { thread, origins: vec![origin], state, deadline });
    }

    /// A request that another node did not do looks for the owner again.
    fn ask_again(&mut self, now: u64, key: RequestKey) {
        let from = now + self.settings.retry;
        if let Some(pending) = self.requests.get_mut(&key)
            && matches!(pending.state, RequestState::Forwarded { .. })
        {
            pending.state = RequestState::Waiting { from };
        }
    }

    /// The requests of a thread that is no longer worked on here look for its owner.
    pub(super) fn requeue(&mut self, now: u64, thread: Thread) {
        let from = now + self.settings.retry;
        for pending in self.requests.values_mut().filter(|pending| pending.thread == thread) {
            if pending.state == RequestState::Here {
                pending.state = RequestState::Waiting { from };
            }
        }
        self.return_forwarded(thread);
    }

    /// Gives requests of other nodes back: only an owner does them.
    fn return_forwarded(&mut self, thread: Thread) {
        let mut returned = Vec::new();
        for (key, pending) in self.requests.iter_mut().filter(|(_, pending)| pending.thread == thread) {
            pending.origins.retain(|origin| match origin {
                Origin::Client => true,
                Origin::Peer(node) => {
                    returned.push(Action::Send { to: *node, message: PeerMessage::NotOwner { key: *key } });
                    false
                }
            });
        }
        self.requests.retain(|_, pending| !pending.origins.is_empty());
        self.actions.extend(returned);
    }

    /// Sends the requests that wait here to the owner of their thread.
    pub(super) fn forward(&mut self, now: u64, thread: Thread, owner: NodeId) {
        self.return_forwarded(thread);
        let until = now + self.settings.forward_timeout;
        for (key, pending) in self.requests.iter_mut().filter(|(_, pending)| pending.thread == thread) {
            if pending.state == RequestState::Here {
                pending.state = RequestState::Forwarded { until };
                self.actions.push(Action::Send { to: owner, message: PeerMessage::Forward { key: *key, thread } });
            }
        }
    }

    /// Brings waiting requests to their threads.
    pub(super) fn route_waiting(&mut self, now: u64) {
        let mut wanted = Vec::new();
        for pending in self.requests.values_mut() {
            match pending.state {
                RequestState::Waiting { from } if now >= from => {}
                // It may have been done: the key keeps it from being done twice.
                RequestState::Forwarded { until } if now >= until => {}
                _ => continue,
            }
            pending.state = RequestState::Here;
            wanted.push(pending.thread);
        }
        for thread in wanted {
            if !self.threads.contains_key(&thread) {
                self.seek(now, thread);
            }
        }
    }

    /// Answers what has taken too long, and everything that a draining node cannot do any more.
    pub(super) fn give_up_requests(&mut self, now: u64) {
        let late: Vec<RequestKey> =
            self.requests.iter().filter(|(_, pending)| now >= pending.deadline).map(|(key, _)| *key).collect();
        for key in late {
            self.answer(key, Answer::Unavailable);
        }
        if self.draining {
            let waiting = |pending: &Pending| matches!(pending.state, RequestState::Waiting { .. });
            let moved: Vec<RequestKey> =
                self.requests.iter().filter(|(_, pending)| waiting(pending)).map(|(key, _)| *key).collect();
            for key in moved {
                self.answer(key, Answer::Moved);
            }
        }
    }

    pub(super) fn answer(&mut self, key: RequestKey, answer: Answer) {
        for origin in self.requests.remove(&key).map(|pending| pending.origins).unwrap_or_default() {
            self.reply(key, origin, answer);
        }
    }

    fn reply(&mut self, key: RequestKey, origin: Origin, answer: Answer) {
        self.actions.push(match origin {
            Origin::Client => Action::Answer { key, answer },
            Origin::Peer(node) => Action::Send { to: node, message: PeerMessage::Answered { key, answer } },
        });
    }
}

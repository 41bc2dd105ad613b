//! The requests that are not answered, and who is to be answered.

use super::Node;
use crate::message::{Action, Answer, Need, NodeId, PeerMessage, RequestKey, Thread};

/// A request that is not answered.
pub(super) struct Pending {
    pub thread: Thread,
    pub need: Need,
    pub repeatable: bool,
    /// Its number: requests of a thread are run in this order.
    pub arrival: u64,
    /// Whether a client of this node has sent it.
    pub from_client: bool,
    /// The other nodes that have forwarded it.
    peers: Vec<NodeId>,
    pub progress: Progress,
    /// A node that was lost had it.
    may_be_done: bool,
    /// How often another node did not do it.
    returned: u32,
    /// Until then it waits for earlier requests that were forwarded elsewhere.
    pub held_until: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is in its thread's queue: the owner is looked for until then.
    Looking { deadline: u64 },
    /// The executor does it.
    Running,
    /// Another node has it. `left` is the time that is left for looking, should it come back.
    Forwarded { left: u64 },
}

#[derive(Clone, Copy)]
enum Origin {
    Client,
    Peer(NodeId),
}

impl Node {
    pub(super) fn request(&mut self, now: u64, key: RequestKey, thread: Thread, need: Need, repeatable: bool) {
        if self.is_over() {
            self.actions.push(Action::Answer { key, answer: Answer::Moved });
            return;
        }
        self.add(now, key, thread, need, repeatable, Origin::Client);
    }

    pub(super) fn peer(&mut self, now: u64, from: NodeId, message: PeerMessage) {
        match message {
            // The lease may be this node's without its knowing, when the answer to its take was lost: it looks, and takes
            // it again then. A request that another node sent is never sent on.
            PeerMessage::Forward { key, thread, need, repeatable } => {
                if self.is_live(now) && !self.is_over() {
                    self.add(now, key, thread, need, repeatable, Origin::Peer(from));
                } else {
                    self.refuse(from, key);
                }
            }
            PeerMessage::Answered { key } => self.answered_elsewhere(now, key),
            PeerMessage::NotOwner { key } => self.returned(now, key, from),
        }
    }

    fn add(&mut self, now: u64, key: RequestKey, thread: Thread, need: Need, repeatable: bool, origin: Origin) {
        if let Some(pending) = self.requests.get_mut(&key) {
            match origin {
                Origin::Client => pending.from_client = true,
                Origin::Peer(node) if matches!(pending.progress, Progress::Forwarded { .. }) => self.refuse(node, key),
                Origin::Peer(node) if pending.peers.contains(&node) => {}
                Origin::Peer(node) => pending.peers.push(node),
            }
            return;
        }
        if self.requests.len() >= self.settings.max_requests {
            match origin {
                Origin::Client => self.actions.push(Action::Answer { key, answer: Answer::Busy }),
                Origin::Peer(node) => self.refuse(node, key),
            }
            return;
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let (from_client, peers) = match origin {
            Origin::Client => (true, Vec::new()),
            Origin::Peer(node) => (false, vec![node]),
        };
        let pending = Pending {
            thread,
            need,
            repeatable,
            arrival,
            from_client,
            peers,
            progress: Progress::Looking { deadline: now + self.settings.request_timeout },
            may_be_done: false,
            returned: 0,
            held_until: None,
        };
        self.requests.insert(key, pending);
        self.threads.entry(thread).or_default().queue.insert(arrival, key);
        self.work_on(now, thread);
    }

    /// A request that was run here is answered, also to the nodes that have forwarded it.
    pub(super) fn finished(&mut self, now: u64, key: RequestKey) {
        if !self.requests.get(&key).is_some_and(|pending| pending.progress == Progress::Running) {
            return;
        }
        let Some(pending) = self.requests.remove(&key) else { return };
        for node in pending.peers {
            self.actions.push(Action::Send { to: node, message: PeerMessage::Answered { key } });
        }
        if let Some(state) = self.threads.get_mut(&pending.thread) {
            state.runs.remove(&key);
        }
        self.work_on(now, pending.thread);
    }

    /// Another node has answered. One that runs here nevertheless is finished here.
    fn answered_elsewhere(&mut self, now: u64, key: RequestKey) {
        let Some(pending) = self.requests.get_mut(&key) else { return };
        if pending.progress == Progress::Running || !pending.from_client {
            return;
        }
        let (thread, arrival) = (pending.thread, pending.arrival);
        pending.from_client = false;
        if let Some(state) = self.threads.get_mut(&thread) {
            state.forwarded.remove(&arrival);
        }
        self.drop_unasked(key);
        self.work_on(now, thread);
    }

    /// Another node has not done a request.
    fn returned(&mut self, now: u64, key: RequestKey, from: NodeId) {
        let Some(pending) = self.requests.get(&key) else { return };
        let (thread, arrival) = (pending.thread, pending.arrival);
        let is_there = |state: &super::ThreadState| state.forwarded.get(&arrival).is_some_and(|(_, to)| *to == from);
        if self.threads.get(&thread).is_some_and(is_there) {
            self.look_again(now, key);
            self.work_on(now, thread);
        }
    }

    /// A forwarded request looks for the owner again where it may be done twice, and ends otherwise.
    fn forgo(&mut self, now: u64, key: RequestKey) {
        let Some(pending) = self.requests.get_mut(&key) else { return };
        pending.may_be_done = true;
        if pending.repeatable {
            self.look_again(now, key);
        } else {
            self.end(key, Answer::Unknown);
        }
    }

    /// The outcome of one request is unknown.
    pub(super) fn lost_request(&mut self, now: u64, key: RequestKey) {
        let Some(thread) = self.requests.get(&key).map(|pending| pending.thread) else { return };
        let is_forwarded =
            |state: &super::ThreadState| state.forwarded.values().any(|(forwarded, _)| *forwarded == key);
        if self.threads.get(&thread).is_some_and(is_forwarded) {
            self.forgo(now, key);
            self.work_on(now, thread);
        }
    }

    /// The connection to a node has ended: what it had looks for the owner again where it may be done twice. What the node
    /// has sent and is not begun is not done.
    pub(super) fn lost(&mut self, now: u64, node: NodeId) {
        let mut threads = Vec::new();
        let (mut had, mut sent) = (Vec::new(), Vec::new());
        for (thread, state) in &self.threads {
            let before = had.len() + sent.len();
            had.extend(state.forwarded.values().filter(|(_, to)| *to == node).map(|(key, _)| *key));
            let is_of_node = |key: &&RequestKey| self.requests.get(key).is_some_and(|p| p.peers.contains(&node));
            sent.extend(state.queue.values().filter(is_of_node).copied());
            if had.len() + sent.len() > before {
                threads.push(*thread);
            }
        }
        for key in had {
            self.forgo(now, key);
        }
        for key in sent {
            let Some(pending) = self.requests.get_mut(&key) else { continue };
            pending.peers.retain(|peer| *peer != node);
            // The node may have sent it once more on its next connection, before the end of the last was noticed here.
            self.refuse(node, key);
            self.drop_unasked(key);
        }
        for thread in threads {
            self.work_on(now, thread);
        }
    }

    /// Puts a forwarded request back to its place in the queue. Without a pause the first time only.
    fn look_again(&mut self, now: u64, key: RequestKey) {
        let Some(pending) = self.requests.get_mut(&key) else { return };
        let Progress::Forwarded { left } = pending.progress else { return };
        pending.progress = Progress::Looking { deadline: now.saturating_add(left) };
        pending.held_until = None;
        let pause = if pending.returned == 0 { 0 } else { self.settings.retry };
        pending.returned = pending.returned.saturating_add(1);
        let state = self.threads.entry(pending.thread).or_default();
        state.forwarded.remove(&pending.arrival);
        state.queue.insert(pending.arrival, key);
        state.next_try = state.next_try.max(now + pause);
    }

    /// Gives the requests of other nodes in a thread's queue back: only an owner does them.
    pub(super) fn refuse_peers(&mut self, thread: Thread) {
        let keys: Vec<RequestKey> =
            self.threads.get(&thread).map(|state| state.queue.values().copied().collect()).unwrap_or_default();
        for key in keys {
            self.refuse_peers_of(key);
        }
    }

    pub(super) fn refuse_peers_of(&mut self, key: RequestKey) {
        let Some(pending) = self.requests.get_mut(&key) else { return };
        for node in std::mem::take(&mut pending.peers) {
            self.refuse(node, key);
        }
        self.drop_unasked(key);
    }

    fn refuse(&mut self, node: NodeId, key: RequestKey) {
        self.actions.push(Action::Send { to: node, message: PeerMessage::NotOwner { key } });
    }

    /// Forgets a request in the queue that nobody waits for.
    fn drop_unasked(&mut self, key: RequestKey) {
        let unasked = |pending: &Pending| !pending.from_client && pending.peers.is_empty();
        if self.requests.get(&key).is_some_and(unasked) {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: RequestKey) {
        if let Some(pending) = self.requests.remove(&key)
            && let Some(state) = self.threads.get_mut(&pending.thread)
        {
            state.queue.remove(&pending.arrival);
            state.forwarded.remove(&pending.arrival);
        }
    }

    /// Answers what has looked for an owner for too long.
    pub(super) fn give_up_requests(&mut self, now: u64) {
        let is_late = |pending: &Pending| matches!(pending.progress, Progress::Looking { deadline } if now >= deadline);
        let late: Vec<RequestKey> =
            self.requests.iter().filter(|(_, pending)| is_late(pending)).map(|(key, _)| *key).collect();
        for key in late {
            self.end(key, if self.draining { Answer::Moved } else { Answer::Unavailable });
        }
    }

    /// Ends a request that does not run. Its client is not told that nothing was done when that is not known.
    pub(super) fn end(&mut self, key: RequestKey, answer: Answer) {
        self.refuse_peers_of(key);
        let Some(pending) = self.requests.get(&key) else { return };
        let answer = if pending.may_be_done { Answer::Unknown } else { answer };
        self.remove(key);
        self.actions.push(Action::Answer { key, answer });
    }
}

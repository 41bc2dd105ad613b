//! Messages between nodes, and what clients send and are told.

use loomd_ownership::{Input, NodeId, PeerMessage, RequestKey, Thread};

use super::clients::Outcome;
use super::slot::{Event, What};
use super::world::{THREADS, World};

impl World {
    /// Sends a message to another node, on a new connection if there is none.
    pub fn send(&mut self, slot: usize, id: NodeId, to: NodeId, message: PeerMessage) {
        let target = self.slots.iter().position(|other| other.id == to && other.node.is_some());
        let is_parted = |target: usize| {
            let until = self.network.parted.get(&(slot.min(target), slot.max(target)));
            until.is_some_and(|until| *until > self.now)
        };
        let connection = match (self.network.known(id, to), target) {
            (Some(connection), _) => connection,
            (None, Some(target)) if !is_parted(target) => {
                let (connection, unaware) = self.network.connect(id, to);
                for (last, node) in unaware {
                    if let Some(slot) = self.slots.iter().position(|slot| slot.id == node) {
                        let node_lost = self.network.other(last, node);
                        let what = What::Lost { connection: Some(last), node: node_lost };
                        self.at(self.now, Event::Machine { slot, id: node, what });
                    }
                }
                connection
            }
            (None, _) => {
                let at = self.now + self.random.between(1, 500);
                let what = match message {
                    // It is known that it was not sent.
                    PeerMessage::Forward { key, .. } if self.random.per_mille(500) => {
                        What::Input(Input::Peer { from: to, message: PeerMessage::NotOwner { key } })
                    }
                    _ => What::Lost { connection: None, node: to },
                };
                self.at(at, Event::Machine { slot, id, what });
                return;
            }
        };
        let Some(target) = target.filter(|_| !self.network.is_broken(connection)) else { return };
        let outcome = match message {
            PeerMessage::Answered { key } => self.slots[slot].executor.results.get(&key).copied(),
            _ => None,
        };
        let at = self.now + self.delay();
        let at = self.network.arrival(connection, to, at);
        self.at(at, Event::Machine { slot: target, id: to, what: What::Peer { connection, message, outcome } });
    }

    pub fn break_connections(&mut self, is_broken: impl Fn(NodeId, NodeId) -> bool) {
        for (connection, node, other) in self.network.break_where(is_broken) {
            let slowest = if self.random.per_mille(300) { 12_000 } else { 100 };
            let at = self.now + self.random.below(slowest);
            if let Some(slot) = self.slots.iter().position(|slot| slot.id == node) {
                let what = What::Lost { connection: Some(connection), node: other };
                self.at(at, Event::Machine { slot, id: node, what });
            }
        }
    }

    /// Tells a client of a node how its request ended.
    pub fn tell(&mut self, id: NodeId, key: RequestKey, outcome: Outcome, ran_there: bool) -> Result<(), String> {
        if let Some(wanted) = self.clients.answer(id, key, (outcome, ran_there), self.now, &mut self.database)? {
            let at = self.now + self.random.between(100, 1_000);
            self.at(at, Event::Send { wanted });
        }
        Ok(())
    }

    /// A client sends a request to its node, or to another one if that is gone; the same one twice, now and then.
    pub fn send_request(&mut self, wanted: usize) {
        let (client, thread, need, repeatable, key) = {
            let wanted = &self.clients.requests[wanted];
            if wanted.over.is_some() || !wanted.waiting.is_empty() {
                return;
            }
            (wanted.client, wanted.thread, wanted.need, wanted.repeatable, wanted.key)
        };
        let up: Vec<usize> = (0..self.slots.len()).filter(|slot| self.slots[*slot].node.is_some()).collect();
        if up.is_empty() {
            self.at(self.now + 500, Event::Send { wanted });
            return;
        }
        let connected = self.connected.get(&client).copied();
        let same = up.iter().copied().find(|slot| Some(self.slots[*slot].id) == connected);
        let stays = same.filter(|_| !self.random.per_mille(100));
        let slot = stays.unwrap_or_else(|| up[self.random.below(up.len() as u64) as usize]);
        let id = self.slots[slot].id;
        self.connected.insert(client, id);
        let at = self.now + self.delay();
        let last = self.arrivals.entry((client, id)).or_default();
        *last = at.max(*last);
        let at = *last;
        self.clients.sent(wanted, id, self.now);
        let request = Input::Request { key, thread, need, repeatable };
        self.at(at, Event::Machine { slot, id, what: What::Input(request.clone()) });
        if repeatable && self.random.per_mille(50) {
            // The client is impatient, and sends it elsewhere too.
            let other = up[self.random.below(up.len() as u64) as usize];
            if other != slot {
                let (id, at) = (self.slots[other].id, self.now + self.random.below(4_000));
                self.clients.sent(wanted, id, self.now);
                self.at(at, Event::Machine { slot: other, id, what: What::Input(request) });
            }
        }
    }

    /// Clients of some machine begin to follow a thread, or follow it no longer.
    pub fn follow(&mut self) {
        let slot = self.random.below(self.slots.len() as u64) as usize;
        let thread = Thread(self.random.below(THREADS).into());
        let is_new = !self.slots[slot].followed.remove(&thread);
        if is_new {
            self.slots[slot].followed.insert(thread);
        }
        let input = if is_new { Input::Follow { thread } } else { Input::Unfollow { thread } };
        let id = self.slots[slot].id;
        self.at(self.now, Event::Machine { slot, id, what: What::Input(input) });
    }

    pub fn scan(&mut self) {
        self.at(self.now + 2_000, Event::Scan);
        let slot = self.random.below(self.slots.len() as u64) as usize;
        if self.slots[slot].cut_until > self.now {
            return;
        }
        for thread in self.unfinished.clone() {
            if self.database.holder(thread, self.now).is_none() {
                let (id, at) = (self.slots[slot].id, self.now + self.random.below(50));
                self.at(at, Event::Machine { slot, id, what: What::Input(Input::Abandoned { thread }) });
            }
        }
    }
}

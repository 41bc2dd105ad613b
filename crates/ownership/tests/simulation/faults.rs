//! How nodes start and end in a simulation, and what goes wrong: crashes, pauses, partitions, a database that is away, and orders to drain.

use loomd_ownership::{Input, Node, NodeId};

use super::clients::Outcome;
use super::executor::Executor;
use super::slot::{Event, What};
use super::world::{FAULTS_END, World};

impl World {
    pub fn fault(&mut self) {
        let slot = self.random.below(self.slots.len() as u64) as usize;
        let id = self.slots[slot].id;
        let length = self.random.between(10, 30_000);
        let until = (self.now + length).min(FAULTS_END);
        match self.random.below(9) {
            0 => {
                self.stop(slot);
                self.at(until, Event::Restart { slot });
            }
            1 | 2 => {
                self.slots[slot].paused_until = until;
                self.at(until, Event::Resume { slot, id });
            }
            3 => self.slots[slot].cut_until = until,
            4 => {
                let other = self.random.below(self.slots.len() as u64) as usize;
                let (a, b) = (id, self.slots[other].id);
                self.network.parted.insert((slot.min(other), slot.max(other)), until);
                self.break_connections(|c, d| (c, d) == (a.min(b), a.max(b)));
            }
            5 => {
                // One connection ends, and the next can be made.
                self.break_connections(|a, b| a == id || b == id);
            }
            6 => {
                // The database is slow, and then away.
                let slow_until = self.now + self.random.between(1_000, 12_000);
                self.slots[slot].slow_until = slow_until;
                self.at(slow_until, Event::Cut { slot, until: until.max(slow_until) });
            }
            7 => {
                // The database is away.
                let until = (self.now + length / 3).min(FAULTS_END);
                for slot in &mut self.slots {
                    slot.cut_until = slot.cut_until.max(until);
                }
            }
            _ => self.at(self.now, Event::Machine { slot, id, what: What::Input(Input::Drain) }),
        }
    }

    pub fn start(&mut self, slot: usize) {
        if self.slots[slot].node.is_some() {
            return;
        }
        self.starts += 1;
        let (id, settings) = (NodeId(self.starts), self.settings);
        let machine = &mut self.slots[slot];
        (machine.id, machine.node) = (id, Some(Node::new(id, settings)));
        machine.executor = Executor::default();
        machine.followed.clear();
        machine.unloading.clear();
        machine.slow_until = 0;
        machine.paused_until = 0;
        self.at(self.now, Event::Machine { slot, id, what: What::Tick });
    }

    /// Ends the process of a node. Its clients and the other nodes notice, and clients send what is unanswered elsewhere.
    pub fn stop(&mut self, slot: usize) {
        let id = self.slots[slot].id;
        self.slots[slot].node = None;
        self.slots[slot].paused_until = 0;
        self.slots[slot].inbox.clear();
        self.break_connections(|a, b| a == id || b == id);
        for wanted in 0..self.clients.requests.len() {
            let lost = &mut self.clients.requests[wanted];
            if lost.over.is_some() || !lost.waiting.contains(&id) {
                continue;
            }
            lost.waiting.retain(|node| *node != id);
            if !lost.repeatable {
                lost.over = Some(Outcome::Unknown);
            } else if lost.waiting.is_empty() {
                let at = self.now + self.random.between(100, 1_000);
                self.at(at, Event::Send { wanted });
            }
        }
    }
}

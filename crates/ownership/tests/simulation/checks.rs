//! What must hold in a simulation.

use std::collections::{BTreeMap, BTreeSet};

use loomd_ownership::{Action, NodeId, Thread};

use super::world::{THREADS, World};

impl World {
    /// What must hold after every step: a thread runs on one node at most, which has its lease at the database; queues
    /// are bounded.
    pub fn check(&self) -> Result<(), String> {
        let mut running = BTreeSet::new();
        for machine in &self.slots {
            let Some(node) = &machine.node else { continue };
            if node.unanswered() > self.settings.max_requests {
                return Err(format!("{:?} has {} requests", machine.id, node.unanswered()));
            }
            for thread in node.running(machine.clock(self.now)) {
                if !running.insert(thread) {
                    return Err(format!("{thread:?} runs on two nodes"));
                }
                let holder = self.database.holder(thread, self.now);
                if holder.is_none() || holder != node.session() {
                    return Err(format!("{thread:?} runs on {:?}, and the lease is {holder:?}'s", machine.id));
                }
            }
        }
        Ok(())
    }

    /// What must hold at the end: everything is answered, every thread that is followed or has an unfinished turn has an
    /// owner, and no lease is held by a node that does not use it.
    pub fn check_end(&self) -> Result<(), String> {
        self.clients.check(&self.database, self.settings.order_timeout * 9 / 10)?;
        let mut owners: BTreeMap<Thread, NodeId> = BTreeMap::new();
        let mut wanted = self.unfinished.clone();
        for machine in &self.slots {
            let Some(node) = &machine.node else { return Err(format!("{:?} is down", machine.id)) };
            if node.unanswered() > 0 || !machine.executor.runs.is_empty() {
                return Err(format!("{:?} has {} requests left", machine.id, node.unanswered()));
            }
            owners.extend(node.running(machine.clock(self.now)).into_iter().map(|thread| (thread, machine.id)));
            wanted.extend(&machine.followed);
        }
        for thread in (0..THREADS).map(|number| Thread(number.into())) {
            let (owner, holder) = (owners.get(&thread), self.database.holder(thread, self.now));
            if owner.copied() != holder.map(|session| session.node) {
                return Err(format!("{thread:?} is leased to {holder:?} and owned by {owner:?}"));
            }
            if owner.is_none() && wanted.contains(&thread) {
                return Err(format!("{thread:?} has no owner"));
            }
        }
        Ok(())
    }

    /// A loaded thread is stopped only without a session, or when the lease has another epoch.
    pub fn check_stops(&self, slot: usize, is_taken: bool, actions: &[Action]) -> Result<(), String> {
        let machine = &self.slots[slot];
        let is_live = machine.node.as_ref().is_some_and(|node| node.session().is_some());
        for action in actions {
            if let Action::Stop { thread } = action
                && machine.executor.loaded.contains(thread)
                && !machine.unloading.contains(thread)
                && is_live
                && !is_taken
            {
                return Err(format!("{thread:?} is stopped without need"));
            }
        }
        Ok(())
    }
}

//! Nodes, clients, a network and a database under one scheduler. Everything that happens is an event at a time; the seed
//! decides the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use loomd_ownership::{Action, DbOp, DbReply, Input, Need, Node, NodeId, PeerMessage, Settings, Thread};

use super::clients::Clients;
use super::database::Database;
use super::executor::{Effect, Executor, Step};
use super::network::Network;
use super::random::Random;
use super::slot::{Event, Slot, What};

/// Until then there are faults.
pub const FAULTS_END: u64 = 60_000;
/// By then everything must be done: a session's lifetime and some tries later.
const END: u64 = 105_000;
pub const THREADS: u64 = 3;
/// Clocks run faster or slower than the database's by at most so many per mille; `Settings::clock_margin` allows 33.
const DRIFT: u64 = 30;

pub struct World {
    pub random: Random,
    pub settings: Settings,
    pub now: u64,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The events that are queued, by number.
    events: BTreeMap<usize, Event>,
    numbers: usize,
    pub database: Database,
    pub network: Network,
    pub slots: Vec<Slot>,
    pub starts: u64,
    pub clients: Clients,
    /// The node that each client is connected to.
    pub connected: BTreeMap<u64, NodeId>,
    /// When the last request of a client arrives at a node.
    pub arrivals: BTreeMap<(u64, NodeId), u64>,
    /// The threads with an unfinished turn.
    pub unfinished: BTreeSet<Thread>,
    pub steps: u64,
    /// Whether every input and action is printed.
    trace: bool,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            settings: Settings { max_requests: 24, max_polls: 2, ..Settings::default() },
            now: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            numbers: 0,
            database: Database::default(),
            network: Network::default(),
            slots: Vec::new(),
            starts: 0,
            clients: Clients::default(),
            connected: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            steps: 0,
            trace,
        };
        for slot in 0..world.random.between(2, 5) as usize {
            let (offset, rate) = (world.random.below(1_000_000), world.random.between(1000 - DRIFT, 1001 + DRIFT));
            world.slots.push(Slot {
                id: NodeId(0),
                node: None,
                executor: Executor::default(),
                offset,
                rate,
                paused_until: 0,
                inbox: VecDeque::new(),
                cut_until: 0,
                slow_until: 0,
                unloading: Vec::new(),
                given: 0,
                followed: BTreeSet::new(),
            });
            world.at(0, Event::Restart { slot });
        }
        for client in 0..world.random.between(3, 10) {
            let thread = Thread(world.random.below(THREADS).into());
            let mut at = world.random.below(FAULTS_END);
            for _ in 0..world.random.between(2, 7) {
                let need = if world.random.per_mille(300) { Need::OwnerIfAny } else { Need::Owner };
                let repeatable = need == Need::OwnerIfAny || world.random.per_mille(500);
                let wanted = world.clients.add(client, thread, need, repeatable);
                world.at(at, Event::Send { wanted });
                let pause = if world.random.per_mille(700) { 30 } else { 10_000 };
                at = (at + world.random.below(pause)).min(FAULTS_END);
            }
        }
        for _ in 0..world.random.below(14) {
            let at = world.random.below(FAULTS_END - 1);
            world.at(at, Event::Fault);
        }
        for _ in 0..world.random.below(8) {
            let at = world.random.below(FAULTS_END);
            world.at(at, Event::Follow);
        }
        if world.random.per_mille(500) {
            world.unfinished.insert(Thread(0));
            world.at(1_000, Event::Scan);
        }
        world
    }

    /// Runs until everything is settled. Fails with the first invariant that breaks.
    pub fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse((at, number))) = self.queue.pop()
            && at <= END
        {
            self.now = at;
            let Some(event) = self.events.remove(&number) else { continue };
            self.steps += 1;
            self.step(event).and_then(|()| self.check()).map_err(|error| format!("at {} ms: {error}", self.now))?;
        }
        self.check_end()
    }

    pub fn at(&mut self, at: u64, event: Event) {
        let number = self.numbers;
        self.numbers += 1;
        self.events.insert(number, event);
        self.queue.push(Reverse((at.max(self.now), number)));
    }

    pub fn is_calm(&self) -> bool {
        self.now >= FAULTS_END
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Machine { slot, id, what } => self.deliver(slot, id, what)?,
            Event::Resume { slot, id } => self.resume(slot, id)?,
            Event::Database { slot, id, op, request } => {
                let reply = if !self.is_calm() && self.random.per_mille(5) {
                    DbReply::Failed
                } else {
                    self.database.apply(self.now, self.settings.session_ttl, &request)
                };
                if let Some(at) = self.answer_delay(slot) {
                    self.at(at, Event::Machine { slot, id, what: What::Input(Input::Db { op, reply }) });
                }
            }
            Event::Append { slot, id, key, append } => {
                let reply = Some(self.database.append(&append)?);
                if let Some(at) = self.answer_delay(slot) {
                    self.at(at, Event::Machine { slot, id, what: What::Step(Step::Appended { key, reply }) });
                }
            }
            Event::Send { wanted } => self.send_request(wanted),
            Event::Follow => self.follow(),
            Event::Scan => self.scan(),
            Event::Fault => self.fault(),
            Event::Cut { slot, until } => self.slots[slot].cut_until = until.min(FAULTS_END),
            Event::Restart { slot } => self.start(slot),
        }
        Ok(())
    }

    /// Gives a machine something, after its pause and in order. What is for an earlier start of it is lost.
    fn deliver(&mut self, slot: usize, id: NodeId, what: What) -> Result<(), String> {
        let machine = &mut self.slots[slot];
        if machine.id != id || machine.node.is_none() {
            return Ok(());
        }
        machine.inbox.push_back(what);
        self.resume(slot, id)
    }

    fn resume(&mut self, slot: usize, id: NodeId) -> Result<(), String> {
        while self.slots[slot].id == id && self.slots[slot].node.is_some() && self.slots[slot].paused_until <= self.now
        {
            let Some(what) = self.slots[slot].inbox.pop_front() else { return Ok(()) };
            self.happen(slot, id, what)?;
        }
        Ok(())
    }

    fn happen(&mut self, slot: usize, id: NodeId, what: What) -> Result<(), String> {
        match what {
            What::Input(input) => self.handle(slot, id, input),
            What::About(epoch, input) => {
                let (Input::Loaded { thread } | Input::Unloaded { thread }) = input else { return Ok(()) };
                if let Some(index) = self.slots[slot].unloading.iter().position(|unloading| *unloading == thread)
                    && matches!(input, Input::Unloaded { .. })
                {
                    self.slots[slot].unloading.remove(index);
                }
                let owned = self.slots[slot].executor.owned.get(&thread);
                if owned.is_some_and(|(owned, _)| *owned == epoch) { self.handle(slot, id, input) } else { Ok(()) }
            }
            What::Tick => {
                self.handle(slot, id, Input::Tick)?;
                if let Some(node) = self.slots[slot].node.as_ref().filter(|_| self.slots[slot].id == id) {
                    let machine = &self.slots[slot];
                    let next = machine.when(node.next_tick(machine.clock(self.now))) + self.random.below(20);
                    self.at(next, Event::Machine { slot, id, what: What::Tick });
                }
                Ok(())
            }
            What::Peer { connection, message, outcome } => {
                if self.network.is_broken(connection) {
                    return Ok(());
                }
                if let (PeerMessage::Answered { key }, Some(outcome)) = (message, outcome) {
                    self.tell(id, key, outcome, false)?;
                }
                let from = self.network.other(connection, id);
                self.handle(slot, id, Input::Peer { from, message })
            }
            What::Lost { connection, node } => {
                if connection.is_none_or(|connection| self.network.notice(connection, id)) {
                    self.handle(slot, id, Input::Lost { node })?;
                }
                Ok(())
            }
            What::Step(step) => {
                let is_calm = self.is_calm();
                let effects = self.slots[slot].executor.step(step, is_calm, &mut self.random);
                self.apply(slot, id, effects)
            }
        }
    }

    fn handle(&mut self, slot: usize, id: NodeId, input: Input) -> Result<(), String> {
        let now = self.slots[slot].clock(self.now);
        if self.trace && input != Input::Tick {
            println!("{:>6} {id:?} <- {input:?}", self.now);
        }
        let is_taken = matches!(input, Input::Db { reply: DbReply::Taken { .. }, .. });
        let node = self.slots[slot].node.as_mut();
        let actions = node.map(|node| node.handle(now, input)).unwrap_or_default();
        self.check_stops(slot, is_taken, &actions)?;
        for action in actions {
            if self.trace {
                println!("{:>6} {id:?} -> {action:?}", self.now);
            }
            self.act(slot, id, &action).map_err(|error| format!("{id:?}: {error}"))?;
        }
        let machine = &self.slots[slot];
        if let Some(node) = &machine.node
            && !node.running(now).iter().eq(machine.executor.owned.keys())
        {
            return Err(format!(
                "{id:?} runs {:?}, and its actions say {:?}",
                node.running(now),
                machine.executor.owned
            ));
        }
        Ok(())
    }

    fn act(&mut self, slot: usize, id: NodeId, action: &Action) -> Result<(), String> {
        match action {
            Action::Db { op, request } => {
                if let DbOp::Release { thread, .. } = request
                    && self.slots[slot].executor.owned.contains_key(thread)
                {
                    return Err(format!("{thread:?} is let go before it has stopped"));
                }
                if let Some(at) = self.database_delay(slot) {
                    self.at(at, Event::Database { slot, id, op: *op, request: request.clone() });
                }
            }
            Action::Send { to, message } => self.send(slot, id, *to, *message),
            Action::Answer { key, answer } => self.tell(id, *key, (*answer).into(), false)?,
            Action::Drained => {
                let machine = &self.slots[slot];
                let has_requests = machine.node.as_ref().is_some_and(|node| node.unanswered() > 0);
                let executor = &machine.executor;
                if has_requests
                    || !(executor.owned.is_empty() && executor.loaded.is_empty() && executor.runs.is_empty())
                {
                    return Err("it has drained with threads or requests".into());
                }
                self.stop(slot);
                let at = self.now + self.random.below(5_000);
                self.at(at, Event::Restart { slot });
            }
            Action::Run { .. } | Action::Own { .. } | Action::Stop { .. } | Action::LetGo { .. } => {
                let machine = &mut self.slots[slot];
                let session = machine.node.as_ref().and_then(Node::session);
                let request = match action {
                    Action::Run { key, .. } => Some(self.clients.runs(*key)),
                    _ => None,
                };
                let effects = machine.executor.act(action, session, request, &mut self.random)?;
                self.apply(slot, id, effects)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, slot: usize, id: NodeId, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            match effect {
                Effect::Later(after, step) => {
                    self.at(self.now + after, Event::Machine { slot, id, what: What::Step(step) });
                }
                Effect::Append(key, append) => {
                    if let Some(at) = self.database_delay(slot) {
                        self.at(at, Event::Append { slot, id, key, append });
                    }
                }
                Effect::Give(input) => {
                    let at = self.slots[slot].given.max(self.now + self.random.below(6));
                    self.slots[slot].given = at;
                    if let Input::Unloaded { thread } = input {
                        self.slots[slot].unloading.push(thread);
                    }
                    let what = match input {
                        Input::Loaded { thread } | Input::Unloaded { thread } => {
                            let epoch = self.slots[slot].executor.owned.get(&thread).map_or(0, |(epoch, _)| *epoch);
                            What::About(epoch, input)
                        }
                        _ => What::Input(input),
                    };
                    self.at(at, Event::Machine { slot, id, what });
                }
                Effect::Answer(key, outcome) => self.tell(id, key, outcome, true)?,
            }
        }
        Ok(())
    }

    /// How long a message takes: mostly milliseconds, now and then longer than anyone waits for it.
    pub fn delay(&mut self) -> u64 {
        if !self.is_calm() && self.random.per_mille(15) {
            self.random.between(100, 10_000)
        } else {
            self.random.between(1, 20)
        }
    }

    /// When a message to or from the database arrives; `None` when it is lost. In a partition it may arrive late.
    fn database_delay(&mut self, slot: usize) -> Option<u64> {
        let cut_until = self.slots[slot].cut_until;
        let delay = self.delay();
        if cut_until > self.now {
            return self.random.per_mille(500).then_some(cut_until + delay);
        }
        (self.is_calm() || !self.random.per_mille(5)).then_some(self.now + delay)
    }

    fn answer_delay(&mut self, slot: usize) -> Option<u64> {
        let more = if self.slots[slot].slow_until > self.now { self.random.between(500, 3_000) } else { 0 };
        self.database_delay(slot).map(|at| at + more)
    }
}

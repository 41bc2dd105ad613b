//! Nodes, clients, a network and a database under one scheduler. Everything that happens is an event at a time; the seed
//! decides the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use loomd_ownership::{Action, Answer, DbOp, Input, Node, NodeId, OpId, RequestKey, Settings, Thread};

use super::database::Database;
use super::random::Random;

/// Until then there are faults.
const FAULTS_END: u64 = 60_000;
/// By then everything must be done: a session's lifetime and some tries later, and before requests are given up.
const END: u64 = 105_000;
const THREADS: u64 = 3;

#[derive(Debug)]
enum Event {
    Node { slot: usize, id: NodeId, input: Input },
    Database { slot: usize, id: NodeId, op: OpId, request: DbOp },
    Tick { slot: usize, id: NodeId },
    Send { key: RequestKey },
    Fault,
    Restart { slot: usize },
}

/// A machine that runs one node at a time.
struct Slot {
    id: NodeId,
    /// `None` while it is down, or after it has drained.
    node: Option<Node>,
    /// The clocks of machines differ.
    clock: u64,
    paused_until: u64,
    /// Until then it does not reach the database.
    cut_until: u64,
    /// The threads that its actions say it owns.
    owned: BTreeSet<Thread>,
    /// The last record that it showed of each thread.
    shown: BTreeMap<Thread, u64>,
}

pub struct World {
    random: Random,
    settings: Settings,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// The events that are queued, by number.
    waiting: BTreeMap<usize, Event>,
    numbers: usize,
    database: Database,
    slots: Vec<Slot>,
    starts: u64,
    /// The thread of each request.
    requests: BTreeMap<RequestKey, Thread>,
    /// The machine that an unanswered request was sent to.
    sent: BTreeMap<RequestKey, usize>,
    done: BTreeMap<RequestKey, u64>,
    /// Pairs of machines that do not reach each other, and until when.
    parted: BTreeMap<(usize, usize), u64>,
    pub steps: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            settings: Settings { max_requests: 32, max_batch: 4, ..Settings::default() },
            now: 0,
            events: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            numbers: 0,
            database: Database::default(),
            slots: Vec::new(),
            starts: 0,
            requests: BTreeMap::new(),
            sent: BTreeMap::new(),
            done: BTreeMap::new(),
            parted: BTreeMap::new(),
            steps: 0,
        };
        let nodes = world.random.between(2, 5) as usize;
        for slot in 0..nodes {
            let clock = world.random.below(1_000_000);
            let (owned, shown) = (BTreeSet::new(), BTreeMap::new());
            world.slots.push(Slot { id: NodeId(0), node: None, clock, paused_until: 0, cut_until: 0, owned, shown });
            world.at(0, Event::Restart { slot });
        }
        for number in 0..world.random.between(10, 40) {
            let (key, thread) = (RequestKey(number), Thread(world.random.below(THREADS).into()));
            world.requests.insert(key, thread);
            let at = world.random.below(FAULTS_END);
            world.at(at, Event::Send { key });
        }
        for _ in 0..world.random.below(14) {
            let at = world.random.below(FAULTS_END - 1);
            world.at(at, Event::Fault);
        }
        world
    }

    /// Runs until every request is done. Fails with the first invariant that breaks.
    pub fn run(&mut self) -> Result<(), String> {
        while self.done.len() < self.requests.len() || self.now < FAULTS_END {
            let Some(Reverse((at, _, number))) = self.events.pop() else { return Err("nothing happens".into()) };
            self.now = at;
            if self.now > END {
                return Err(format!("{} of {} requests are done", self.done.len(), self.requests.len()));
            }
            let Some(event) = self.waiting.remove(&number) else { continue };
            self.steps += 1;
            self.step(event).and_then(|()| self.check()).map_err(|error| format!("at {} ms: {error}", self.now))?;
        }
        for (key, seq) in &self.done {
            let log = self.requests.get(key).and_then(|thread| self.database.threads.get(thread));
            let record = log.and_then(|stored| stored.log.get(*seq as usize));
            if record.map(|record| record.key) != Some(*key) {
                return Err(format!("{key:?} was acknowledged and is lost"));
            }
        }
        Ok(())
    }

    fn at(&mut self, at: u64, event: Event) {
        let number = self.numbers;
        self.numbers += 1;
        self.waiting.insert(number, event);
        self.events.push(Reverse((at.max(self.now), number as u64, number)));
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Node { slot, id, input } => self.deliver(slot, id, input),
            Event::Tick { slot, id } => {
                self.deliver(slot, id, Input::Tick)?;
                if self.slots[slot].id == id
                    && let Some(node) = &self.slots[slot].node
                {
                    let clock = self.slots[slot].clock;
                    let next = node.next_tick(self.now + clock) - clock + self.random.below(20);
                    self.at(next, Event::Tick { slot, id });
                }
                Ok(())
            }
            Event::Database { slot, id, op, request } => {
                let reply = self.database.apply(self.now, self.settings.session_ttl, &request)?;
                if let Some(at) = self.database_delay(slot) {
                    self.at(at, Event::Node { slot, id, input: Input::Db { op, reply } });
                }
                Ok(())
            }
            Event::Send { key } => self.send(key),
            Event::Fault => {
                self.fault();
                Ok(())
            }
            Event::Restart { slot } => {
                self.start(slot);
                Ok(())
            }
        }
    }

    /// Gives a node an input, after its pause. What is for an earlier start of it is lost.
    fn deliver(&mut self, slot: usize, id: NodeId, input: Input) -> Result<(), String> {
        let machine = &mut self.slots[slot];
        if machine.id != id || machine.node.is_none() {
            return Ok(());
        }
        if machine.paused_until > self.now {
            let at = machine.paused_until;
            self.at(at, Event::Node { slot, id, input });
            return Ok(());
        }
        let now = self.now + machine.clock;
        let actions = machine.node.as_mut().map(|node| node.handle(now, input)).unwrap_or_default();
        for action in actions {
            self.act(slot, id, action)?;
        }
        let machine = &self.slots[slot];
        if let Some(node) = &machine.node
            && !node.running(now).iter().eq(&machine.owned)
        {
            return Err(format!("{id:?} runs {:?}, and its actions say {:?}", node.running(now), machine.owned));
        }
        Ok(())
    }

    fn act(&mut self, slot: usize, id: NodeId, action: Action) -> Result<(), String> {
        match action {
            Action::Db { op, request } => {
                if let Some(at) = self.database_delay(slot) {
                    self.at(at, Event::Database { slot, id, op, request });
                }
            }
            Action::Send { to, message } => {
                let Some(target) = self.slots.iter().position(|slot| slot.id == to) else { return Ok(()) };
                let pair = (slot.min(target), slot.max(target));
                let parted = self.parted.get(&pair).is_some_and(|until| *until > self.now);
                if !parted && !self.random.per_mille(5) {
                    let at = self.now + self.delay();
                    self.at(at, Event::Node { slot: target, id: to, input: Input::Peer { from: id, message } });
                }
            }
            Action::Answer { key, answer } => self.answered(slot, key, answer)?,
            Action::Show { thread, epoch, seq, key } => self.shown(slot, thread, epoch, seq, key)?,
            Action::Own { thread, .. } => {
                if !self.slots[slot].owned.insert(thread) {
                    return Err(format!("{id:?} owns {thread:?} twice"));
                }
            }
            Action::Stop { thread } => {
                if !self.slots[slot].owned.remove(&thread) {
                    return Err(format!("{id:?} stops {thread:?}, which it does not own"));
                }
            }
            Action::Drained => {
                let has_requests = self.slots[slot].node.as_ref().is_some_and(|node| node.unanswered() > 0);
                if has_requests || !self.slots[slot].owned.is_empty() {
                    return Err(format!("{id:?} has drained with threads or requests"));
                }
                self.stop(slot);
                let at = self.now + self.random.below(5_000);
                self.at(at, Event::Restart { slot });
            }
        }
        Ok(())
    }

    fn answered(&mut self, slot: usize, key: RequestKey, answer: Answer) -> Result<(), String> {
        if self.sent.get(&key) == Some(&slot) {
            self.sent.remove(&key);
        }
        let Answer::Done { seq } = answer else {
            // The client tries elsewhere.
            let at = self.now + self.random.between(100, 1_000);
            self.at(at, Event::Send { key });
            return Ok(());
        };
        let thread = self.requests[&key];
        let record = self.database.threads.get(&thread).and_then(|stored| stored.log.get(seq as usize));
        if record.map(|record| record.key) != Some(key) {
            return Err(format!("{key:?} was acknowledged as record {seq} of {thread:?}, which is {record:?}"));
        }
        if self.done.insert(key, seq).is_some_and(|before| before != seq) {
            return Err(format!("{key:?} was acknowledged twice, differently"));
        }
        Ok(())
    }

    fn shown(&mut self, slot: usize, thread: Thread, epoch: u64, seq: u64, key: RequestKey) -> Result<(), String> {
        let record = self.database.threads.get(&thread).and_then(|stored| stored.log.get(seq as usize));
        if !record.is_some_and(|record| record.key == key && record.epoch == epoch) {
            return Err(format!("{key:?} was shown as record {seq} of {thread:?}, which is {record:?}"));
        }
        let machine = &mut self.slots[slot];
        if !machine.owned.contains(&thread) {
            return Err(format!("{:?} showed a record of {thread:?}, which it does not own", machine.id));
        }
        if machine.shown.insert(thread, seq).is_some_and(|before| before >= seq) {
            return Err(format!("{:?} showed record {seq} of {thread:?} out of order", machine.id));
        }
        Ok(())
    }

    /// A client sends a request to some machine that is up; the same one twice, now and then.
    fn send(&mut self, key: RequestKey) -> Result<(), String> {
        if self.done.contains_key(&key) {
            return Ok(());
        }
        let up: Vec<usize> = (0..self.slots.len()).filter(|slot| self.slots[*slot].node.is_some()).collect();
        if up.is_empty() {
            self.at(self.now + 500, Event::Send { key });
            return Ok(());
        }
        let thread = self.requests[&key];
        let slot = up[self.random.below(up.len() as u64) as usize];
        self.sent.insert(key, slot);
        let (id, at) = (self.slots[slot].id, self.now + self.delay());
        if self.random.per_mille(300) {
            self.at(at, Event::Node { slot, id, input: Input::Follow { thread } });
        }
        self.at(at, Event::Node { slot, id, input: Input::Request { key, thread } });
        if self.random.per_mille(100) {
            // The client is impatient, and sends it elsewhere too.
            let other = up[self.random.below(up.len() as u64) as usize];
            let (id, at) = (self.slots[other].id, self.now + self.random.below(4_000));
            self.at(at, Event::Node { slot: other, id, input: Input::Request { key, thread } });
        }
        Ok(())
    }

    fn start(&mut self, slot: usize) {
        if self.slots[slot].node.is_some() {
            return;
        }
        self.starts += 1;
        let id = NodeId(self.starts);
        let machine = &mut self.slots[slot];
        (machine.id, machine.node) = (id, Some(Node::new(id, self.settings)));
        machine.owned.clear();
        machine.shown.clear();
        self.at(self.now, Event::Tick { slot, id });
    }

    /// Ends the process of a node. Its clients notice, and send what is unanswered elsewhere.
    fn stop(&mut self, slot: usize) {
        self.slots[slot].node = None;
        self.slots[slot].paused_until = 0;
        let lost: Vec<RequestKey> = self.sent.iter().filter(|(_, at)| **at == slot).map(|(key, _)| *key).collect();
        for key in lost {
            self.sent.remove(&key);
            let at = self.now + self.random.between(100, 1_000);
            self.at(at, Event::Send { key });
        }
    }

    fn fault(&mut self) {
        let slot = self.random.below(self.slots.len() as u64) as usize;
        let length = self.random.between(10, 30_000);
        let until = (self.now + length).min(FAULTS_END);
        match self.random.below(6) {
            0 => {
                self.stop(slot);
                self.at(until, Event::Restart { slot });
            }
            1 | 2 => self.slots[slot].paused_until = until,
            3 => self.slots[slot].cut_until = until,
            4 => {
                let other = self.random.below(self.slots.len() as u64) as usize;
                self.parted.insert((slot.min(other), slot.max(other)), until);
            }
            _ => {
                let id = self.slots[slot].id;
                self.at(self.now, Event::Node { slot, id, input: Input::Drain });
            }
        }
    }

    /// How long a message takes: mostly milliseconds, now and then longer than anyone waits for it.
    fn delay(&mut self) -> u64 {
        if self.now < FAULTS_END && self.random.per_mille(15) {
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
        (self.now >= FAULTS_END || !self.random.per_mille(5)).then_some(self.now + delay)
    }

    /// What must hold after every step: a thread runs on one node at most, which has its lease at the database; queues
    /// are bounded.
    fn check(&self) -> Result<(), String> {
        let mut running = BTreeSet::new();
        for machine in &self.slots {
            let Some(node) = &machine.node else { continue };
            if node.unanswered() > self.settings.max_requests {
                return Err(format!("{:?} has {} requests", machine.id, node.unanswered()));
            }
            for thread in node.running(self.now + machine.clock) {
                if !running.insert(thread) {
                    return Err(format!("{thread:?} runs on two nodes"));
                }
                let holder = self.database.threads.get(&thread).and_then(|stored| stored.holder);
                let is_holder = holder
                    .is_some_and(|session| session.node == machine.id && self.database.is_live(session, self.now));
                if !is_holder {
                    return Err(format!("{thread:?} runs on {:?}, and the lease is {holder:?}'s", machine.id));
                }
            }
        }
        Ok(())
    }
}

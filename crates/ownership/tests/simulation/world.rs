//! Nodes, clients, a network and a database under one scheduler. Everything that happens is an event at a time; the seed
//! decides the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use loomd_ownership::{
    Action, DbOp, DbReply, Input, Need, Node, NodeId, OpId, PeerMessage, RequestKey, Settings, Thread,
};

use super::clients::{Clients, Outcome};
use super::database::{Append, Database};
use super::executor::{Effect, Executor, Step};
use super::network::Network;
use super::random::Random;

/// Until then there are faults.
pub const FAULTS_END: u64 = 60_000;
/// By then everything must be done: a session's lifetime and some tries later.
const END: u64 = 105_000;
const THREADS: u64 = 3;
/// Clocks run faster or slower than the database's by at most so many per mille; `Settings::clock_margin` allows 33.
const DRIFT: u64 = 30;

#[derive(Debug)]
pub enum Event {
    Machine {
        slot: usize,
        id: NodeId,
        what: What,
    },
    /// A paused machine goes on.
    Resume {
        slot: usize,
        id: NodeId,
    },
    Database {
        slot: usize,
        id: NodeId,
        op: OpId,
        request: DbOp,
    },
    Append {
        slot: usize,
        id: NodeId,
        key: RequestKey,
        append: Append,
    },
    Send {
        wish: usize,
    },
    Follow,
    /// Some node looks for unfinished turns without an owner.
    Scan,
    Fault,
    /// A machine does not reach the database any more, for a while.
    Cut {
        slot: usize,
        until: u64,
    },
    Restart {
        slot: usize,
    },
}

/// Something that comes to a machine.
#[derive(Debug)]
pub enum What {
    Input(Input),
    /// An input about the thread as it is owned under an epoch.
    About(u64, Input),
    Tick,
    Peer {
        connection: u64,
        message: PeerMessage,
        outcome: Option<Outcome>,
    },
    /// The end of a connection, or the failure to make one.
    Lost {
        connection: Option<u64>,
        node: NodeId,
    },
    Step(Step),
}

/// A machine that runs one node at a time.
pub struct Slot {
    pub id: NodeId,
    /// `None` while it is down, or after it has drained.
    pub node: Option<Node>,
    pub executor: Executor,
    /// The clocks of machines differ, and their rates: per mille of the database's clock.
    offset: u64,
    rate: u64,
    pub paused_until: u64,
    inbox: VecDeque<What>,
    /// Until then it does not reach the database.
    pub cut_until: u64,
    /// Until then the database's answers take seconds.
    pub slow_until: u64,
    /// The threads whose unloading the node has not heard of.
    unloading: Vec<Thread>,
    /// When the executor's last input comes to the node.
    given: u64,
    followed: BTreeSet<Thread>,
}

impl Slot {
    fn clock(&self, now: u64) -> u64 {
        self.offset + now * self.rate / 1000
    }

    /// The time at which the machine's clock shows a time.
    fn when(&self, clock: u64) -> u64 {
        (clock.saturating_sub(self.offset) * 1000).div_ceil(self.rate)
    }
}

pub struct World {
    pub random: Random,
    settings: Settings,
    pub now: u64,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The events that are queued, by number.
    events: BTreeMap<usize, Event>,
    numbers: usize,
    pub database: Database,
    pub network: Network,
    pub slots: Vec<Slot>,
    starts: u64,
    pub clients: Clients,
    /// The node that each client is connected to.
    connected: BTreeMap<u64, NodeId>,
    /// When the last request of a client arrives at a node.
    arrivals: BTreeMap<(u64, NodeId), u64>,
    /// The threads with an unfinished turn.
    unfinished: BTreeSet<Thread>,
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
                let wish = world.clients.add(client, thread, need, repeatable);
                world.at(at, Event::Send { wish });
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
            Event::Send { wish } => self.send_wish(wish),
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

    /// A loaded thread is stopped only without a session, or when the lease has another epoch.
    fn check_stops(&self, slot: usize, is_taken: bool, actions: &[Action]) -> Result<(), String> {
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
                    Action::Run { key, .. } => {
                        let wish = self.clients.by_key(*key);
                        Some((wish.need, wish.repeatable))
                    }
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

    /// Sends a message to another node, on a new connection if there is none.
    fn send(&mut self, slot: usize, id: NodeId, to: NodeId, message: PeerMessage) {
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
                self.at(at, Event::Machine { slot, id, what: What::Lost { connection: None, node: to } });
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

    /// Tells a client of a node how its request ended.
    fn tell(&mut self, id: NodeId, key: RequestKey, outcome: Outcome, ran_there: bool) -> Result<(), String> {
        if let Some(wish) = self.clients.answer(id, key, (outcome, ran_there), self.now, &mut self.database)? {
            let at = self.now + self.random.between(100, 1_000);
            self.at(at, Event::Send { wish });
        }
        Ok(())
    }

    /// A client sends a request to its node, or to another one if that is gone; the same one twice, now and then.
    fn send_wish(&mut self, wish: usize) {
        let (client, thread, need, repeatable, key) = {
            let wish = &self.clients.wishes[wish];
            if wish.over.is_some() || !wish.waiting.is_empty() {
                return;
            }
            (wish.client, wish.thread, wish.need, wish.repeatable, wish.key)
        };
        let up: Vec<usize> = (0..self.slots.len()).filter(|slot| self.slots[*slot].node.is_some()).collect();
        if up.is_empty() {
            self.at(self.now + 500, Event::Send { wish });
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
        self.clients.sent(wish, id, self.now);
        let request = Input::Request { key, thread, need, repeatable };
        self.at(at, Event::Machine { slot, id, what: What::Input(request.clone()) });
        if repeatable && self.random.per_mille(50) {
            // The client is impatient, and sends it elsewhere too.
            let other = up[self.random.below(up.len() as u64) as usize];
            if other != slot {
                let (id, at) = (self.slots[other].id, self.now + self.random.below(4_000));
                self.clients.sent(wish, id, self.now);
                self.at(at, Event::Machine { slot: other, id, what: What::Input(request) });
            }
        }
    }

    /// Clients of some machine begin to follow a thread, or follow it no longer.
    fn follow(&mut self) {
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

    fn scan(&mut self) {
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

    fn start(&mut self, slot: usize) {
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
        for wish in 0..self.clients.wishes.len() {
            let lost = &mut self.clients.wishes[wish];
            if lost.over.is_some() || !lost.waiting.contains(&id) {
                continue;
            }
            lost.waiting.retain(|node| *node != id);
            if !lost.repeatable {
                lost.over = Some(Outcome::Unknown);
            } else if lost.waiting.is_empty() {
                let at = self.now + self.random.between(100, 1_000);
                self.at(at, Event::Send { wish });
            }
        }
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

    /// How long a message takes: mostly milliseconds, now and then longer than anyone waits for it.
    fn delay(&mut self) -> u64 {
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

    /// What must hold after every step: a thread runs on one node at most, which has its lease at the database; queues
    /// are bounded.
    fn check(&self) -> Result<(), String> {
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
    fn check_end(&self) -> Result<(), String> {
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
}

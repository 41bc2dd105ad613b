//! A node for tests by hand: its operations reach the database at once, while it is connected.

use loomd_ownership::{Action, DbOp, Input, Need, Node, NodeId, PeerMessage, RequestKey, Session, Settings, Thread};

use super::database::Database;

pub const THREAD: Thread = Thread(1);

pub struct Machine {
    pub node: Node,
    /// Whether operations reach the database.
    pub connected: bool,
    /// The operations that did not.
    pub missed: Vec<DbOp>,
}

impl Machine {
    /// A node with a session.
    pub fn new(id: u64, database: &mut Database) -> Self {
        let node = Node::new(NodeId(id), Settings::default());
        let mut machine = Self { node, connected: true, missed: Vec::new() };
        machine.handle(0, Input::Tick, database);
        assert_eq!(machine.node.session(), Some(Session { node: NodeId(id), number: 0 }));
        machine
    }

    /// Returns the actions but those at the database.
    pub fn handle(&mut self, now: u64, input: Input, database: &mut Database) -> Vec<Action> {
        let (mut inputs, mut seen) = (vec![input], Vec::new());
        while let Some(input) = inputs.pop() {
            for action in self.node.handle(now, input) {
                match action {
                    Action::Db { op, request } if self.connected => {
                        let reply = database.apply(now, Settings::default().session_ttl, &request);
                        inputs.push(Input::Db { op, reply });
                    }
                    Action::Db { request, .. } => self.missed.push(request),
                    other => seen.push(other),
                }
            }
        }
        seen
    }

    /// Ticks from one time to another; returns the actions.
    pub fn tick(&mut self, times: std::ops::Range<u64>, database: &mut Database) -> Vec<Action> {
        times.step_by(100).flat_map(|now| self.handle(now, Input::Tick, database)).collect()
    }

    /// Ticks up to a time and returns when the node first owned the thread.
    pub fn owns_by(&mut self, from: u64, to: u64, database: &mut Database) -> Option<u64> {
        (from..to).step_by(100).find(|now| {
            self.handle(*now, Input::Tick, database);
            self.node.running(*now).contains(&THREAD)
        })
    }
}

pub fn request(key: u128) -> Input {
    Input::Request { key: RequestKey(key), thread: THREAD, need: Need::Owner, repeatable: false }
}

pub fn read(key: u128) -> Input {
    Input::Request { key: RequestKey(key), thread: THREAD, need: Need::OwnerIfAny, repeatable: true }
}

pub fn finished(key: u128) -> Input {
    Input::Finished { key: RequestKey(key) }
}

pub fn forward(key: u128) -> PeerMessage {
    PeerMessage::Forward { key: RequestKey(key), thread: THREAD, need: Need::Owner, repeatable: false }
}

pub fn from(node: u64, message: PeerMessage) -> Input {
    Input::Peer { from: NodeId(node), message }
}

pub fn send(to: u64, message: PeerMessage) -> Action {
    Action::Send { to: NodeId(to), message }
}

pub fn own(epoch: u64) -> Action {
    Action::Own { thread: THREAD, epoch, taken_over: false }
}

pub fn run(key: u128, epoch: u64) -> Action {
    Action::Run { key: RequestKey(key), thread: THREAD, epoch: Some(epoch) }
}

pub fn answered(key: u128) -> PeerMessage {
    PeerMessage::Answered { key: RequestKey(key) }
}

pub fn not_owner(key: u128) -> PeerMessage {
    PeerMessage::NotOwner { key: RequestKey(key) }
}

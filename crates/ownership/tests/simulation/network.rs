//! The connections between the nodes of a simulation: reliable and ordered until they end, which each side notices for
//! itself, or when the other side makes the next connection.

use std::collections::BTreeMap;

use loomd_ownership::NodeId;

#[derive(Default)]
pub struct Network {
    connections: BTreeMap<u64, Connection>,
    /// The connection of a pair of nodes.
    current: BTreeMap<(NodeId, NodeId), u64>,
    numbers: u64,
    /// Pairs of machines that do not reach each other, and until when.
    pub parted: BTreeMap<(usize, usize), u64>,
}

struct Connection {
    nodes: (NodeId, NodeId),
    broken: bool,
    /// The nodes that have not noticed the end.
    unaware: Vec<NodeId>,
    /// When the last message to each node arrives.
    last: BTreeMap<NodeId, u64>,
}

fn pair(a: NodeId, b: NodeId) -> (NodeId, NodeId) {
    (a.min(b), a.max(b))
}

impl Network {
    /// The connection that a node would send on: broken or not, as far as the node knows there is one.
    pub fn known(&self, from: NodeId, to: NodeId) -> Option<u64> {
        let number = *self.current.get(&pair(from, to))?;
        let connection = &self.connections[&number];
        (!connection.broken || connection.unaware.contains(&from)).then_some(number)
    }

    /// Makes a connection. Returns the nodes that have to notice the end of the last one before.
    pub fn connect(&mut self, from: NodeId, to: NodeId) -> (u64, Vec<(u64, NodeId)>) {
        let unaware = match self.current.get(&pair(from, to)) {
            Some(last) => self.connections[last].unaware.iter().map(|node| (*last, *node)).collect(),
            None => Vec::new(),
        };
        self.numbers += 1;
        let connection =
            Connection { nodes: pair(from, to), broken: false, unaware: Vec::new(), last: BTreeMap::new() };
        self.connections.insert(self.numbers, connection);
        self.current.insert(pair(from, to), self.numbers);
        (self.numbers, unaware)
    }

    pub fn is_broken(&self, number: u64) -> bool {
        self.connections[&number].broken
    }

    /// When a message arrives that takes until `at` at least.
    pub fn arrival(&mut self, number: u64, to: NodeId, at: u64) -> u64 {
        let last = self.connections.get_mut(&number).map(|connection| connection.last.entry(to).or_default());
        last.map_or(at, |last| {
            *last = at.max(*last);
            *last
        })
    }

    /// Breaks the connections between nodes for which `is_broken` holds. Returns who is to notice.
    pub fn break_where(&mut self, is_broken: impl Fn(NodeId, NodeId) -> bool) -> Vec<(u64, NodeId, NodeId)> {
        let mut unaware = Vec::new();
        for (number, connection) in &mut self.connections {
            let (a, b) = connection.nodes;
            if !connection.broken && is_broken(a, b) {
                connection.broken = true;
                connection.unaware = vec![a, b];
                unaware.extend([(*number, a, b), (*number, b, a)]);
            }
        }
        unaware
    }

    /// A node notices the end of a connection. False when it has before.
    pub fn notice(&mut self, number: u64, node: NodeId) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        let before = connection.unaware.len();
        connection.unaware.retain(|unaware| *unaware != node);
        connection.unaware.len() < before
    }

    pub fn other(&self, number: u64, node: NodeId) -> NodeId {
        let (a, b) = self.connections[&number].nodes;
        if a == node { b } else { a }
    }
}

//! The machines of a simulation, and the events that come to them.

use std::collections::{BTreeSet, VecDeque};

use loomd_ownership::{DbOp, Input, Node, NodeId, OpId, PeerMessage, RequestKey, Thread};

use super::clients::Outcome;
use super::database::Append;
use super::executor::{Executor, Step};

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
        wanted: usize,
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
    pub offset: u64,
    pub rate: u64,
    pub paused_until: u64,
    pub inbox: VecDeque<What>,
    /// Until then it does not reach the database.
    pub cut_until: u64,
    /// Until then the database's answers take seconds.
    pub slow_until: u64,
    /// The threads whose unloading the node has not heard of.
    pub unloading: Vec<Thread>,
    /// When the executor's last input comes to the node.
    pub given: u64,
    pub followed: BTreeSet<Thread>,
}

impl Slot {
    pub fn clock(&self, now: u64) -> u64 {
        self.offset + now * self.rate / 1000
    }

    /// The time at which the machine's clock shows a time.
    pub fn when(&self, clock: u64) -> u64 {
        (clock.saturating_sub(self.offset) * 1000).div_ceil(self.rate)
    }
}

//! Which node owns a thread, when several share one database. [`Node`] is one node's part of the protocol as a state
//! machine: it takes inputs with the time of the node's own clock, and returns actions. It does no IO, reads no clock and
//! has no randomness, so that `tests/simulation` can run many nodes under delays, partitions, pauses and crashes, and
//! repeat any run from its seed.
//!
//! The database decides: a session lives as long as it is renewed by the database's clock, a lease belongs to a session,
//! and an append carries the lease's token, which the database checks. What a node believes is only ever older. So that
//! an owner stops before it is taken over, a node counts its session as dead one lifetime after it *sent* the last
//! renewal that succeeded. An append whose outcome is unknown is settled by taking the lease again: the new token keeps
//! the append out if it is still on its way.

mod message;
mod node;
mod settings;

pub use message::{
    Action, Answer, DbOp, DbReply, Holder, Input, NodeId, OpId, PeerMessage, RequestKey, Session, Thread,
};
pub use node::Node;
pub use settings::Settings;

//! Which node owns a thread, when several share one database. [`Node`] is one node's part of the protocol as a state
//! machine: it takes inputs with the time of the node's own clock, and returns actions. It does no IO, reads no clock and
//! has no randomness, so that `tests/simulation` can run many nodes under delays, partitions, pauses and crashes, and
//! repeat any run from its seed.
//!
//! A node decides where a request runs; the executor around it does what the actions say: it runs requests, loads and
//! stops threads, sends messages to other nodes with what belongs to them (parameters and results), and does the
//! operations of the database.
//!
//! The database decides: a session lives as long as it is renewed by the database's clock, a lease belongs to a session,
//! and every append carries its session and the lease's epoch, which the database checks. What a node believes is only
//! ever older. So that an owner stops before it is taken over, a node counts its session as dead one lifetime, less a
//! margin for clocks of different rates, after it *sent* the last renewal that succeeded. A take of unknown outcome is
//! settled by looking: taking again gives the same session the lease under a new epoch.

mod message;
mod node;
mod settings;

pub use message::{Action, Answer, DbOp, DbReply, Input, Need, NodeId, OpId, PeerMessage, RequestKey, Session, Thread};
pub use node::Node;
pub use settings::Settings;

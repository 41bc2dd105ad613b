//! A loaded thread: one task, the only owner of its state. Requests reach it as [`Op`]s. The task replies before it
//! publishes events, so that no client sees an event before the response to its cause.

mod memory;
mod op;
mod realtime;
mod recording;
mod running;
mod running_turn;
mod state;
mod task;

pub(crate) use memory::Memory;
pub(crate) use op::{Elicit, LoadReason, Op, RealtimeRequest, ReloadMcpServers};
pub use op::{Opened, Reply};
pub(crate) use state::Thread;
pub(crate) use task::{add_side_facts, name_updated};

//! A loaded thread: one task, the only owner of its state. Requests reach it as [`Op`]s. The task replies before it
//! publishes events, so that no client sees an event before the response to its cause.

mod answered;
mod idle;
mod memory;
mod noting;
mod op;
mod realtime;
mod recording;
mod recovering;
mod revert;
mod running;
mod running_turn;
mod sample;
mod settings;
mod state;
mod task;
mod terminals;

pub(crate) use idle::{not_added, queue_changed};
pub(crate) use memory::Memory;
pub(crate) use op::{Elicit, LoadReason, Op, RealtimeRequest, ReloadMcpServers};
pub use op::{Opened, Reply, Reverted};
pub(crate) use state::Thread;
pub(crate) use task::{add_side_facts, name_updated};

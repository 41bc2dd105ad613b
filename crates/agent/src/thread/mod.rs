//! A loaded thread: one task, the only owner of its state. Requests reach it as [`Op`]s. The task replies before it
//! publishes events, so that no client sees an event before the response to its cause.

mod answered;
mod ending;
mod idle;
mod launching;
mod memory;
mod noting;
mod op;
mod realtime;
mod recording;
mod recovering;
mod requests;
mod revert;
mod rolling_back;
mod running_turn;
mod sample;
mod settings;
mod showing;
mod state;
mod task;
mod terminals;

pub(crate) use idle::{not_added, queue_changed};
pub(crate) use launching::in_progress;
pub(crate) use memory::Memory;
pub(crate) use op::{Elicit, LoadReason, Op, RealtimeRequest, ReloadMcpServers};
pub use op::{Opened, Reply, Reverted};
pub(crate) use showing::add_side_facts;
pub(crate) use state::Thread;
pub(crate) use task::name_updated;

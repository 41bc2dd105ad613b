//! The realtime session of a thread: how it is opened, and what the model on its other side is told about the thread.
//! `realtime_link.rs` is how turns return their messages to it, `thread/realtime.rs` is what the thread's task does with it.

mod connect;
mod session;
mod startup_context;

pub(crate) use connect::ConnectCx;
pub(crate) use session::RealtimeSession;

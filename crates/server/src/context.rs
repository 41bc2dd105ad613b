//! The context of a handler.

use std::sync::Arc;

use crate::answer::AnswerSlot;
use crate::app::App;
use crate::connections::{Client, ConnectionId};
use crate::outbound::OutboundQueue;
use crate::processes::Processes;

/// What a handler may use: the server, the client that made the request, and the answer to it.
pub(crate) struct Context {
    pub app: Arc<App>,
    pub connection: ConnectionId,
    pub client: Arc<Client>,
    pub outbound: Arc<OutboundQueue>,
    pub processes: Arc<Processes>,
    pub answer: AnswerSlot,
}

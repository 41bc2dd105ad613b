//! What every handler gets beside its params.

use std::sync::Arc;

use crate::answer::AnswerSlot;
use crate::app::App;
use crate::connections::{Client, ConnectionId};
use crate::outbox::Outbox;
use crate::processes::Processes;

/// What a handler may use: the server, the client that made the request, and the answer to it.
pub(crate) struct Context {
    pub app: Arc<App>,
    pub connection: ConnectionId,
    pub client: Arc<Client>,
    pub outbox: Arc<Outbox>,
    pub processes: Arc<Processes>,
    pub answer: AnswerSlot,
}

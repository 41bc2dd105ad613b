//! The context of a handler.

use std::sync::Arc;

use loomd_console::Role;
use loomd_store::Decider;

use crate::answer::AnswerSlot;
use crate::app::App;
use crate::connections::{Client, ConnectionId};
use crate::outbound::OutboundQueue;
use crate::processes::Processes;
use crate::samples::Samples;

/// What a handler may use: the server, the client that made the request, and the answer to it.
pub(crate) struct Context {
    pub app: Arc<App>,
    pub connection: ConnectionId,
    pub client: Arc<Client>,
    pub outbound: Arc<OutboundQueue>,
    /// The programs of `command/exec`.
    pub processes: Arc<Processes>,
    /// The programs of `process/spawn`.
    pub spawned: Arc<Processes>,
    /// The samples that the client waits for.
    pub samples: Arc<Samples>,
    /// Limits what a session of the console may do.
    pub role: Option<Role>,
    /// Whether the client may run programs outside of sandboxes.
    pub may_run_processes: bool,
    pub answer: AnswerSlot,
}

impl Context {
    /// The client as the decider of an approval.
    pub fn decider(&self) -> Decider {
        decider(self.connection, Some(&self.client), self.role)
    }
}

/// The client of a connection as the decider of an approval.
pub(crate) fn decider(connection: ConnectionId, client: Option<&Client>, role: Option<Role>) -> Decider {
    Decider {
        connection: connection.0.to_string(),
        client: client.map(|client| client.identity.name.clone()),
        role: role.map(|role| role.to_string()),
    }
}

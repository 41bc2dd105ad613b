//! The state that the file operations and watches of all clients share.

use std::sync::Arc;

use loomd_files::{Deliver, Order};
use loomd_protocol::ServerNotification;
use tokio::sync::Semaphore;

use crate::connections::{ConnectionId, Connections};
use crate::outbound::Notification;

/// What the file operations of all clients share.
pub(crate) struct Files {
    /// The order in which operations on a path run.
    pub order: Order,
    /// The right to hold a large file in memory.
    pub large: Semaphore,
}

impl Default for Files {
    fn default() -> Self {
        Self { order: Order::default(), large: Semaphore::new(1) }
    }
}

/// Returns the callback that sends changes to the connections that watch them.
pub(crate) fn watched(connections: Arc<Connections>) -> Deliver {
    Box::new(move |owner, changed| {
        let connections = Arc::clone(&connections);
        Box::pin(async move {
            let notification = Notification::new(ServerNotification::FsChanged(changed));
            connections.send_to([ConnectionId(owner.0)], &notification).await;
        })
    })
}

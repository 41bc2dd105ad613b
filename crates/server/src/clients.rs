//! All clients together, for what concerns the whole process: who is signed in.

use std::sync::Arc;

use loomd_accounts::Clients;
use loomd_model::BoxFuture;
use loomd_protocol::ServerNotification;
use tracing::error;

use crate::connections::Connections;
use crate::outbox::Notification;

pub(crate) struct AllClients {
    pub connections: Arc<Connections>,
}

impl Clients for AllClients {
    fn tell(&self, news: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match Notification::new(news) {
                Ok(notification) => self.connections.broadcast(&notification).await,
                Err(error) => error!(%error, "cannot serialize a notification"),
            }
        })
    }
}

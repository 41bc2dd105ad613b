//! Notifications and server requests about the account, which go to all clients.

use std::sync::Arc;

use loomd_accounts::{Accounts, ClientId, Host, RequestError};
use loomd_config::ManagedRequirements;
use loomd_model::BoxFuture;
use loomd_protocol::{AbsolutePathBuf, JsonValue, ServerNotification, ServerRequest};
use tracing::error;

use crate::cloud::Cloud;
use crate::connections::{ConnectionId, Connections};
use crate::outbound::Notification;
use crate::server_requests::ServerRequests;

pub(crate) struct Clients {
    pub connections: Arc<Connections>,
    pub server_requests: Arc<ServerRequests>,
    pub home: AbsolutePathBuf,
    pub managed: Arc<ManagedRequirements>,
}

impl Host for Clients {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match Notification::new(notification) {
                Ok(notification) => self.connections.broadcast(&notification).await,
                Err(error) => error!(%error, "cannot serialize a notification"),
            }
        })
    }

    fn request(
        &self,
        first: Option<ClientId>,
        request: ServerRequest,
    ) -> BoxFuture<'_, Result<JsonValue, RequestError>> {
        Box::pin(async move {
            let first = first.map(|ClientId(id)| ConnectionId(id));
            let asked = match first.filter(|id| self.connections.outbound(*id).is_some()) {
                Some(first) => vec![first],
                None => self.connections.ids(),
            };
            let queues: Vec<_> = asked.iter().filter_map(|id| self.connections.outbound(*id)).collect();
            if queues.is_empty() {
                return Err(RequestError::NoClient);
            }
            let mut open = self.server_requests.open(asked, &request).map_err(|_| RequestError::NoClient)?;
            for outbound in queues {
                outbound.request(open.json.clone());
            }
            (&mut open.answer).await.map_err(|_| RequestError::NoClient)?.map_err(RequestError::Rpc)
        })
    }

    /// Loads the managed requirements of the new account before the change is answered: nothing may run without them.
    fn account_changed<'a>(&'a self, accounts: &'a Accounts) -> BoxFuture<'a, ()> {
        Box::pin(async move { Cloud::new(&self.home, accounts).look_up(&self.managed).await })
    }
}

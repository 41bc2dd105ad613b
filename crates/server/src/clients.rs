//! Notifications and server requests about the account, which go to all clients.

use std::sync::Arc;

use loomd_accounts::{Accounts, ClientId, Host, RequestError};
use loomd_config::ManagedRequirements;
use loomd_model::BoxFuture;
use loomd_protocol::{AbsolutePathBuf, JsonValue, ServerNotification, ServerRequest};

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
            self.connections.broadcast(&Notification::new(notification)).await;
        })
    }

    fn request(
        &self,
        first: Option<ClientId>,
        request: ServerRequest,
    ) -> BoxFuture<'_, Result<JsonValue, RequestError>> {
        Box::pin(async move {
            let first = first.map(|ClientId(id)| ConnectionId(id));
            let asked = match first.filter(|id| self.connections.contains(*id)) {
                Some(first) => vec![first],
                None => self.connections.ids(),
            };
            if asked.is_empty() {
                return Err(RequestError::NoClient);
            }
            let mut open = self.server_requests.open(asked.clone(), &request).map_err(|_| RequestError::NoClient)?;
            self.connections.request(&asked, &open.message);
            (&mut open.answer).await.map_err(|_| RequestError::NoClient)?.map_err(RequestError::Rpc)
        })
    }

    /// Loads the managed requirements of the new account before the change is answered: nothing may run without them.
    fn account_changed<'a>(&'a self, accounts: &'a Accounts) -> BoxFuture<'a, ()> {
        Box::pin(async move { Cloud::new(&self.home, accounts).look_up(&self.managed).await })
    }
}

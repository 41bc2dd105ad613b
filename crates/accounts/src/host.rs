//! The server around [`Accounts`]: sends notifications and server requests to clients.

use loomd_model::BoxFuture;
use loomd_protocol::{JsonValue, RpcError, ServerNotification, ServerRequest};

use crate::Accounts;

/// A client, by the id of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(pub u64);

/// Why a server request got no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("no client is connected")]
    NoClient,
    #[error("code={} message={}", .0.code, .0.message)]
    Rpc(RpcError),
}

pub trait Host: Send + Sync {
    /// Notifies all clients.
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// Sends a request to client `first`, or to all clients if it is not connected; the first response counts. Dropping
    /// the future withdraws the request.
    fn request(
        &self,
        first: Option<ClientId>,
        request: ServerRequest,
    ) -> BoxFuture<'_, Result<JsonValue, RequestError>>;

    /// Called after the account changed and before clients are notified. Completes once the rest of the process follows
    /// the change.
    fn account_changed<'a>(&'a self, accounts: &'a Accounts) -> BoxFuture<'a, ()>;
}

/// The host of programs without clients.
impl Host for () {
    fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request(&self, _: Option<ClientId>, _: ServerRequest) -> BoxFuture<'_, Result<JsonValue, RequestError>> {
        Box::pin(std::future::ready(Err(RequestError::NoClient)))
    }

    fn account_changed<'a>(&'a self, _: &'a Accounts) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

//! The server around accounts: how clients are told and asked.

use loomd_model::BoxFuture;
use loomd_protocol::{JsonValue, RpcError, ServerNotification, ServerRequest};

use crate::Accounts;

/// A client, as the host counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(pub u64);

/// Why a question to clients has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("no client is connected")]
    NoClient,
    #[error("code={} message={}", .0.code, .0.message)]
    Rpc(RpcError),
}

pub trait Host: Send + Sync {
    /// Tells all clients.
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// Asks the one client, or all when it is not there; the first answer counts. Dropping the future takes the
    /// question back.
    fn request(
        &self,
        first: Option<ClientId>,
        request: ServerRequest,
    ) -> BoxFuture<'_, Result<JsonValue, RequestError>>;

    /// Somebody else is signed in, or nobody; nobody has been told. Done when the rest of the process has taken note.
    fn account_changed<'a>(&'a self, accounts: &'a Accounts) -> BoxFuture<'a, ()>;
}

/// For programs without clients.
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

//! The server around accounts: how clients are told and asked.

use loomd_model::BoxFuture;
use loomd_protocol::{JsonValue, RpcError, ServerNotification, ServerRequest};

use crate::Accounts;

/// A client, as the host counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(pub u64);

/// Why a question to clients has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AskError {
    #[error("no client is connected")]
    Nobody,
    #[error("code={} message={}", .0.code, .0.message)]
    Refused(RpcError),
}

pub trait Host: Send + Sync {
    /// Tells all clients.
    fn tell(&self, news: ServerNotification) -> BoxFuture<'_, ()>;

    /// Asks the one client, or all when it is not there; the first answer counts. Dropping the future takes the
    /// question back.
    fn ask(&self, first: Option<ClientId>, request: ServerRequest) -> BoxFuture<'_, Result<JsonValue, AskError>>;

    /// Somebody else is signed in, or nobody; nobody has been told. Done when the rest of the process has taken note.
    fn switched<'a>(&'a self, accounts: &'a Accounts) -> BoxFuture<'a, ()>;
}

/// For programs without clients.
impl Host for () {
    fn tell(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, _: Option<ClientId>, _: ServerRequest) -> BoxFuture<'_, Result<JsonValue, AskError>> {
        Box::pin(std::future::ready(Err(AskError::Nobody)))
    }

    fn switched<'a>(&'a self, _: &'a Accounts) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

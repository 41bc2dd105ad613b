//! What can go wrong, in words that say what to do about it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::RpcError;
use thiserror::Error;

use crate::{CompletedTurn, Disconnect};

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot connect to {endpoint}: {source}")]
    Connect { endpoint: String, source: ConnectError },
    /// The server refused the request, or failed at it.
    #[error("{method}: {error}")]
    Rpc { method: String, error: Box<RpcError> },
    /// The request may still be carried out.
    #[error("no answer to {method} within {after:?}")]
    Timeout { method: String, after: Duration },
    /// Nothing was heard of the turn for so long that it was given up and interrupted.
    #[error("nothing was heard of turn {turn_id} for {after:?}")]
    TurnTimeout { thread_id: String, turn_id: String, after: Duration },
    /// The turn ended with an error; what it did until then is here.
    #[error("the turn failed: {}", .0.error_message())]
    TurnFailed(Box<CompletedTurn>),
    /// The connection is gone. A request that was in progress may have been carried out.
    #[error("{0}")]
    Disconnected(Arc<Disconnect>),
    /// The client was closed here.
    #[error("the client is closed")]
    Closed,
    /// The answer is not what this release of the protocol says.
    #[error("cannot understand the answer to {method}: {source}")]
    Decode { method: String, source: serde_json::Error },
    /// The params cannot be written as JSON.
    #[error("cannot encode the params of {method}: {source}")]
    Encode { method: String, source: serde_json::Error },
    #[error("no turn is running in thread {thread_id}")]
    NoActiveTurn { thread_id: String },
    /// Whoever holds the stream of events did not read it; what came meanwhile is lost.
    #[error("the reader of events fell too far behind")]
    Lagged,
}

impl Error {
    /// The server's own error, where it is one.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rpc { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The listener answered, but with no websocket: 401 when the token is missing or wrong.
    #[error("the server refused with status {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("not a websocket server: {0}")]
    Handshake(String),
    #[error("not a websocket URL; expected `ws://HOST:PORT` or `wss://HOST:PORT`")]
    BadUrl,
    #[error("only `ws://` and `wss://` are spoken")]
    NotWs,
    #[error("cannot use a root certificate: {0}")]
    BadCertificate(String),
    #[error("the token cannot be sent as a header")]
    BadToken,
}
